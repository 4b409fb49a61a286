"""A client of Pasarela on one page: follows over server-sent events, and pays. Python 3.9, the standard library alone."""

import http.client
import json
import os
import random
import sys
import time
import urllib.parse
import uuid

FINAL = {"BAD_USER_INPUT", "FORBIDDEN", "TOO_COMPLEX", "GRAPHQL_PARSE_FAILED", "GRAPHQL_VALIDATION_FAILED"}
# Every other code, such as one of a proxy, does not say how far a payment came.
MOVED_NOTHING = {
    "BAD_USER_INPUT", "UNAUTHENTICATED", "FORBIDDEN", "PERSISTED_QUERY_NOT_SUPPORTED", "TOO_COMPLEX", "CURSOR_INVALID",
    "EVENTS_GAP", "UPSTREAM_TIMEOUT", "UPSTREAM_UNAVAILABLE", "UPSTREAM_RATE_LIMITED", "UPSTREAM_INVALID", "RATE_LIMITED",
    "STORE_UNAVAILABLE", "PAYMENTS_STOPPED", "DRAINING", "GRAPHQL_PARSE_FAILED", "GRAPHQL_VALIDATION_FAILED",
}
DAY = 86_400
BROKEN = (OSError, http.client.HTTPException, ValueError)
command = json.loads(sys.stdin.readline())
address = urllib.parse.urlsplit(command["url"])
tokens = command["tokens"]


def say(**line):
    print(json.dumps(line), flush=True)


def post(query, variables, accept="application/json", wait=35):
    """Sends one operation. P6 for answers, K3 for streams: `wait` is the longest silence, in seconds."""
    connection = http.client.HTTPConnection(address.netloc, timeout=wait)
    headers = {"Authorization": "Bearer " + tokens[0], "Content-Type": "application/json", "Accept": accept}
    connection.request("POST", address.path, json.dumps({"query": query, "variables": variables}), headers)
    return connection.getresponse()


def pause(tries, least=0):
    """E9 and E10."""
    time.sleep(max(least, min(0.1 * 2 ** min(tries, 9), 30) * random.uniform(0.5, 1)))


def least_of(response):
    """E10: the least pause that the header of an answer asks for. A proxy may write a date, which counts for nothing here."""
    seconds = response.getheader("Retry-After") or ""
    return int(seconds) if seconds.isdigit() else 0


def blocks(response):
    """The blocks of a stream, also those with an id alone (B2). One that is cut off ends like one that completes."""
    block = {}
    while line := response.readline().decode():
        name, _, value = line.rstrip("\r\n").partition(":")
        if line.strip() == "":
            yield block
            block = {}
        elif name:
            block[name] = value[1:] if value.startswith(" ") else value


def failure(answer):
    """The code of a result without data, and the least pause that it asks for. T3: the next token is another one."""
    extensions = (answer.get("errors") or [{}])[0].get("extensions") or {}
    if extensions.get("code") == "UNAUTHENTICATED" and len(tokens) > 1:
        tokens.pop(0)
    return extensions.get("code"), extensions.get("retryAfterMs", 0) / 1000, extensions


def told_by(response):
    """The text of an answer that is no stream. E11: a 4xx that is no GraphQL, but 408 and 429, comes of another address, or of a defect."""
    text = response.read().decode()
    if 400 <= response.status < 500 and response.status not in (408, 429):
        try:
            if json.loads(text)["errors"]:
                return text
        except (ValueError, TypeError, LookupError):
            pass
        sys.exit(say(refused=str(response.status)))
    return text


def read_head():
    """C4. Null is no cursor: the read has failed."""
    for tries in range(10**9):
        least = 0
        try:
            response = post("query { eventCursor }", {})
            least = least_of(response)
            answer = json.loads(told_by(response))
            head = (answer.get("data") or {}).get("eventCursor")
            if head is not None:
                return head
            code, asked, extensions = failure(answer)
            least = max(least, asked)
            if code in FINAL and not extensions.get("retryable"):
                sys.exit(say(refused=code))
        except BROKEN:
            pass
        pause(tries, least)


def follow():
    # An app keeps the cursor beside its events, and writes both in one transaction (C3).
    cursor = command.get("saved") or read_head()
    tries = 0
    while True:
        least = 0
        live = False
        try:
            response = post(command["query"], {"after": cursor}, "text/event-stream", 30)
            if not response.getheader("Content-Type", "").startswith("text/event-stream"):
                least = least_of(response)
                stream = [{"event": "next", "data": told_by(response)}]
            else:
                stream = blocks(response)
            for block in stream:
                if block.get("event") == "next":
                    result = json.loads(block["data"])
                    if result.get("data"):
                        tries = 0
                        cursor = result["data"]["moneyIn"]["cursor"]
                        say(event=cursor)
                        continue
                    code, asked, extensions = failure(result)
                    least = max(least, asked)
                    if code in ("EVENTS_GAP", "CURSOR_INVALID"):
                        cursor = extensions.get("oldest") or read_head()
                        say(gap=code)
                    elif code in FINAL and not extensions.get("retryable"):
                        return say(refused=code)
                elif block.get("id") and "data" not in block:
                    cursor = block["id"]
                    if not live:
                        say(live=True)
                    live = True
        except BROKEN:
            pass
        pause(tries, least)
        tries += 1


def kept():
    """The payment that an earlier start has kept. An app has a list, in its database."""
    try:
        with open(command["store"]) as file:
            return json.load(file)
    except FileNotFoundError:
        return None


def keep(payment, **says):
    """Keeps a payment, so that it outlasts this program; with `says` also how it ended, and tells the app."""
    payment.update(says=says)
    with open(command["store"] + ".new", "w") as file:
        json.dump(payment, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(command["store"] + ".new", command["store"])
    folder = os.open(os.path.dirname(command["store"]), os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)
    if says:
        say(**says)


def pay():
    payment = kept()
    is_kept = payment is not None
    if payment is None:
        payment = {"key": str(uuid.uuid4()), "input": command["input"], "made": time.time(), "calls": 0, "says": {}}
    if payment["says"]:
        # P15: an app lets go of a payment once the person has seen this. Only then a press after a refusal is a new payment.
        return say(**payment["says"])
    if is_kept and payment["calls"] == 0:
        # It has moved nothing, and a start is no press: an app shows it, and sends it where a person presses.
        return say(ready=True)
    until = time.monotonic() + 60
    tries = 0
    # P8: by itself for 23 hours alone, here since the key was made, which is before anything was sent. Later an app asks `payment`, and sends where a person presses, up to 29 days.
    while time.monotonic() < until and -DAY < time.time() - payment["made"] < 23 * 3_600:
        # P2 and P14: the key, and a call that may move money, before it is sent.
        payment["calls"] += 1
        keep(payment)
        least, refusal, is_final = 0, None, False
        try:
            response = post(command["query"], {"input": {**payment["input"], "idempotencyKey": payment["key"]}})
            least = least_of(response)
            answer = json.load(response)
            result = (answer.get("data") or {}).get("createMoneyOut")
            if result is None:
                code, asked, extensions = failure(answer)
                least = max(least, asked)
                # An error within the result says that the mutation was executed.
                was_executed = any(len(error.get("path") or []) > 1 for error in answer.get("errors") or [])
                if not was_executed and code in MOVED_NOTHING:
                    payment["calls"] -= 1
                if code in FINAL and not extensions.get("retryable"):
                    refusal, is_final = code, True
            elif result.get("__typename", "").endswith("Success"):
                return keep(payment, done=True)
            elif result.get("__typename") == "OutcomeUnknown":
                if not result.get("safeToRetry"):
                    # An app asks `payment` from now on (P12).
                    return keep(payment, unknown=True)
            elif result.get("code") == "IDEMPOTENCY_KEY_REUSED":
                return say(unknown=True)
            elif result.get("code") not in (None, "IDEMPOTENCY_IN_PROGRESS"):
                payment["calls"] -= 1
                refusal = result["code"]
        except BROKEN:
            pass
        if refusal and payment["calls"] == 0:
            return keep(payment, refused=refusal)
        if is_final:
            return keep(payment) or say(unknown=True)
        keep(payment)
        pause(tries, least)
        tries += 1
    say(**({"ready": True} if payment["calls"] == 0 else {"unknown": True}))


follow() if command["do"] == "follow" else pay()
