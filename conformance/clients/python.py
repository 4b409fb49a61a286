"""A client of Pasarela on one page: follows over server-sent events, and pays. Python 3.9, the standard library alone."""

import http.client
import json
import random
import sys
import time
import urllib.parse
import uuid

FINAL = {"BAD_USER_INPUT", "FORBIDDEN", "NOT_FOUND", "TOO_COMPLEX"}
FINAL |= {"GRAPHQL_PARSE_FAILED", "GRAPHQL_VALIDATION_FAILED"}
# Every other code, such as one of a proxy, does not say how far a payment came.
MOVED_NOTHING = {
    "BAD_USER_INPUT", "UNAUTHENTICATED", "FORBIDDEN", "PERSISTED_QUERY_NOT_SUPPORTED", "TOO_COMPLEX", "CURSOR_INVALID",
    "EVENTS_GAP", "UPSTREAM_TIMEOUT", "UPSTREAM_UNAVAILABLE", "UPSTREAM_RATE_LIMITED", "UPSTREAM_INVALID", "RATE_LIMITED",
    "STORE_UNAVAILABLE", "PAYMENTS_STOPPED", "DRAINING", "GRAPHQL_PARSE_FAILED", "GRAPHQL_VALIDATION_FAILED",
}
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


def read_head():
    """C4. Null is no cursor: the read has failed."""
    for tries in range(10**9):
        least = 0
        try:
            answer = json.load(post("query { eventCursor }", {}))
            head = (answer.get("data") or {}).get("eventCursor")
            if head is not None:
                return head
            code, least, extensions = failure(answer)
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
                least = float(response.getheader("Retry-After") or 0)
                stream = [{"event": "next", "data": response.read().decode()}]
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


def pay():
    # An app keeps the key beside the input before it sends anything (P2), and goes on with it after a restart.
    key = str(uuid.uuid4())
    unclear = False
    until = time.monotonic() + 60
    tries = 0
    while time.monotonic() < until:
        least = 0
        try:
            answer = json.load(post(command["query"], {"input": {**command["input"], "idempotencyKey": key}}))
            result = (answer.get("data") or {}).get("createMoneyOut")
            if result is None:
                code, least, extensions = failure(answer)
                # An error within the result says that the mutation was executed.
                was_executed = any(len(error.get("path") or []) > 1 for error in answer.get("errors") or [])
                unclear = unclear or was_executed or code not in MOVED_NOTHING
                if code in FINAL and not extensions.get("retryable"):
                    return say(unknown=True) if unclear else say(refused=code)
            elif result["__typename"].endswith("Success"):
                return say(done=True)
            elif result["__typename"] == "OutcomeUnknown":
                unclear = True
                if not result["safeToRetry"]:
                    return say(unknown=True)
            elif result["code"] == "IDEMPOTENCY_IN_PROGRESS":
                unclear = True
            elif result["code"] == "IDEMPOTENCY_KEY_REUSED":
                return say(unknown=True)
            elif not unclear:
                return say(refused=result["code"])
        except BROKEN:
            unclear = True
        pause(tries, least)
        tries += 1
    say(unknown=True)


follow() if command["do"] == "follow" else pay()
