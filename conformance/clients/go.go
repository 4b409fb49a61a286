// A client of Pasarela on one page: follows over server-sent events, and pays. Go 1.19, the standard library alone.
package main

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"math"
	mathrand "math/rand"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

type object map[string]any

type result struct {
	Data   map[string]json.RawMessage
	Errors []struct {
		Path       []any
		Extensions struct {
			Code         string
			Retryable    bool
			RetryAfterMs float64
			Oldest       string
		}
	}
}

var command struct {
	Do, URL, Query, Saved, Store string
	Tokens                       []string
	Input                        object
}

var final = set("BAD_USER_INPUT FORBIDDEN TOO_COMPLEX GRAPHQL_PARSE_FAILED GRAPHQL_VALIDATION_FAILED")

// Every other code, such as one of a proxy, does not say how far a payment came.
var movedNothing = set(`BAD_USER_INPUT UNAUTHENTICATED FORBIDDEN PERSISTED_QUERY_NOT_SUPPORTED TOO_COMPLEX CURSOR_INVALID EVENTS_GAP
	UPSTREAM_TIMEOUT UPSTREAM_UNAVAILABLE UPSTREAM_RATE_LIMITED UPSTREAM_INVALID RATE_LIMITED STORE_UNAVAILABLE PAYMENTS_STOPPED
	DRAINING GRAPHQL_PARSE_FAILED GRAPHQL_VALIDATION_FAILED`)

func set(codes string) map[string]bool {
	all := map[string]bool{}
	for _, code := range strings.Fields(codes) {
		all[code] = true
	}
	return all
}

func say(key string, value any) {
	line, _ := json.Marshal(object{key: value})
	fmt.Println(string(line))
}

// Sends one operation. P6: an answer is waited for longer than the gateway takes. K3: a stream that is silent for 30 s is dead.
func post(query string, variables object, accept string) (*http.Response, *time.Timer, error) {
	body, _ := json.Marshal(object{"query": query, "variables": variables})
	request, err := http.NewRequest("POST", command.URL, bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	request.Header.Set("Authorization", "Bearer "+command.Tokens[0])
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", accept)
	cancel := make(chan struct{})
	request.Cancel = cancel
	silence := time.AfterFunc(35*time.Second, func() { close(cancel) })
	response, err := http.DefaultTransport.RoundTrip(request)
	return response, silence, err
}

// The text of an answer that is no stream. E11: a 4xx that is no GraphQL, but 408 and 429, comes of another address, or of a defect.
// Of a payment it says nothing.
func textOf(response *http.Response) []byte {
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	status, answer := response.StatusCode, result{}
	isRefusal := command.Do == "follow" && status >= 400 && status < 500 && status != 408 && status != 429
	if isRefusal && (json.Unmarshal(text, &answer) != nil || len(answer.Errors) == 0) {
		say("refused", strconv.Itoa(status))
		os.Exit(0)
	}
	return text
}

// E10: the least pause that the header of an answer asks for, in milliseconds.
func leastOf(response *http.Response) float64 {
	seconds, _ := strconv.ParseUint(response.Header.Get("Retry-After"), 10, 32)
	return float64(seconds) * 1000
}

func ask(query string, variables object) (answer result, least float64, err error) {
	response, _, err := post(query, variables, "application/json")
	if err == nil {
		least = leastOf(response)
		err = json.Unmarshal(textOf(response), &answer)
	}
	return
}

// E9 and E10: `least` is in milliseconds.
func pause(tries int, least float64) {
	random := math.Min(100*math.Pow(2, math.Min(float64(tries), 9)), 30_000) * (0.5 + mathrand.Float64()/2)
	time.Sleep(time.Duration(math.Max(least, random) * float64(time.Millisecond)))
}

// The code of a result without data, and the least pause. T3: the next token is another one.
func failure(answer result) (code string, least float64, retryable bool, oldest string) {
	if len(answer.Errors) > 0 {
		told := answer.Errors[0].Extensions
		code, least, retryable, oldest = told.Code, told.RetryAfterMs, told.Retryable, told.Oldest
	}
	if code == "UNAUTHENTICATED" && len(command.Tokens) > 1 {
		command.Tokens = command.Tokens[1:]
	}
	return
}

// C4. Null is no cursor: the read has failed.
func readHead() string {
	for tries := 0; ; tries++ {
		answer, least, err := ask("query { eventCursor }", object{})
		var head *string
		if err == nil && json.Unmarshal(answer.Data["eventCursor"], &head) == nil && head != nil {
			return *head
		}
		code, asked, retryable, _ := failure(answer)
		if final[code] && !retryable {
			say("refused", code)
			os.Exit(0)
		}
		pause(tries, math.Max(least, asked))
	}
}

// Reads the blocks of a stream, also those with an id alone (B2), until it ends or `take` has had enough.
func blocks(body io.Reader, silence *time.Timer, take func(block map[string]string) bool) {
	block := map[string]string{}
	for lines := bufio.NewReader(body); ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		// The timer has rung while `take` was at work, and this request has ended. A timer that rings twice ends the program.
		if !silence.Stop() {
			return
		}
		silence.Reset(30 * time.Second)
		name, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), ":")
		if name != "" {
			block[name] = strings.TrimPrefix(value, " ")
		} else if value == "" {
			if !take(block) {
				return
			}
			block = map[string]string{}
		}
	}
}

func follow() {
	// An app keeps the cursor beside its events, and writes both in one transaction (C3).
	cursor := command.Saved
	if cursor == "" {
		cursor = readHead()
	}
	refused := false
	for tries := 0; !refused; tries++ {
		least, live := 0.0, false
		take := func(block map[string]string) bool {
			if id := block["id"]; id != "" && block["data"] == "" {
				cursor = id
				if !live {
					say("live", true)
				}
				live = true
			}
			var told result
			if block["event"] != "next" || json.Unmarshal([]byte(block["data"]), &told) != nil {
				return true
			}
			var event struct{ Cursor string }
			if json.Unmarshal(told.Data["moneyIn"], &event) == nil {
				tries, cursor = 0, event.Cursor
				say("event", cursor)
				return true
			}
			code, asked, retryable, oldest := failure(told)
			least = math.Max(least, asked)
			if code == "EVENTS_GAP" || code == "CURSOR_INVALID" {
				if cursor = oldest; cursor == "" {
					cursor = readHead()
				}
				say("gap", code)
			} else if final[code] && !retryable {
				refused = true
				say("refused", code)
			}
			return !refused
		}
		response, silence, err := post(command.Query, object{"after": cursor}, "text/event-stream")
		if err == nil {
			if strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
				blocks(response.Body, silence, take)
			} else {
				least = leastOf(response)
				take(map[string]string{"event": "next", "data": string(textOf(response))})
			}
			response.Body.Close()
		}
		if !refused {
			pause(tries, least)
		}
	}
}

// A payment as it outlasts this program. An app has a list of them, in its database.
type payment struct {
	Input object // with its key
	Made  time.Time
	Calls int    // how many may have moved money
	Says  object // how it ended, as the app is told
}

// Keeps a payment; with `says` also how it ended, and tells the app.
func (one *payment) keep(says object) {
	one.Says = says
	text, _ := json.Marshal(one)
	file, err := os.Create(command.Store + ".new")
	if err == nil {
		_, err = file.Write(text)
	}
	if err != nil || file.Sync() != nil || file.Close() != nil || os.Rename(file.Name(), command.Store) != nil {
		panic("The payment cannot be kept.")
	}
	folder, err := os.Open(filepath.Dir(command.Store))
	if err != nil || folder.Sync() != nil || folder.Close() != nil {
		panic("The payment cannot be kept.")
	}
	for name, value := range says {
		say(name, value)
	}
}

// The payment that an earlier start has kept, or a new one.
func current() (one payment, isKept bool) {
	text, err := os.ReadFile(command.Store)
	if !os.IsNotExist(err) && (err != nil || json.Unmarshal(text, &one) != nil) {
		panic("The payment cannot be read.")
	}
	if isKept = one.Input != nil; !isKept {
		random := make([]byte, 16)
		rand.Read(random)
		one = payment{Input: command.Input, Made: time.Now()}
		one.Input["idempotencyKey"] = fmt.Sprintf("%x", random)
	}
	return
}

// Sends a payment once. `says` is how it ended; nothing is sent after a call that `isFinal`.
func (one *payment) send() (says object, isFinal bool, least float64) {
	// P2 and P14: the key, and a call that may move money, before it is sent.
	one.Calls++
	one.keep(nil)
	answer, least, err := ask(command.Query, object{"input": one.Input})
	var told struct {
		Typename    string `json:"__typename"`
		Code        string
		SafeToRetry bool
	}
	code, hasMovedNothing, isRefusal := "", false, false
	if err != nil {
		return nil, false, least
	} else if json.Unmarshal(answer.Data["createMoneyOut"], &told) != nil || told.Typename == "" {
		var asked float64
		var retryable bool
		code, asked, retryable, _ = failure(answer)
		least = math.Max(least, asked)
		hasMovedNothing, isFinal = movedNothing[code], final[code] && !retryable
		isRefusal = isFinal
		for _, told := range answer.Errors {
			// An error within the result says that the mutation was executed.
			hasMovedNothing = hasMovedNothing && len(told.Path) <= 1
		}
	} else if strings.HasSuffix(told.Typename, "Success") {
		return object{"done": true}, true, 0
	} else if told.Typename == "OutcomeUnknown" && !told.SafeToRetry {
		// An app asks `payment` from now on (P12).
		return object{"unknown": true}, true, 0
	} else {
		code, isFinal = told.Code, told.Code == "IDEMPOTENCY_KEY_REUSED"
		hasMovedNothing = code != "" && code != "IDEMPOTENCY_IN_PROGRESS" && !isFinal
		isRefusal = hasMovedNothing
	}
	if hasMovedNothing {
		one.Calls--
	}
	if isRefusal && one.Calls == 0 {
		says = object{"refused": code}
	}
	return
}

func pay() {
	one, isKept := current()
	if isKept && one.Says == nil && one.Calls == 0 {
		// It has moved nothing, and a start is no press: an app shows it, and sends it where a person presses.
		say("ready", true)
		return
	}
	// P15: an app lets go of a payment once the person has seen how it ended. Only then a press after a refusal is a new payment.
	says, isFinal, least := one.Says, one.Says != nil, 0.0
	const day = 24 * time.Hour
	for tries, until := 0, time.Now().Add(time.Minute); !isFinal && says == nil && time.Now().Before(until); tries++ {
		// P8: by itself for 23 hours alone, here since the key was made, which is before anything was sent. Later an app asks `payment`, and sends where a person presses, up to 29 days.
		if age := time.Since(one.Made.Round(0)); age < -day || age > 23*time.Hour {
			break
		}
		if says, isFinal, least = one.send(); !isFinal && says == nil {
			one.keep(nil)
			pause(tries, least)
		}
	}
	one.keep(says)
	if says == nil {
		say(map[bool]string{true: "ready", false: "unknown"}[one.Calls == 0], true)
	}
}

func main() {
	mathrand.Seed(time.Now().UnixNano())
	if json.NewDecoder(os.Stdin).Decode(&command) != nil {
		os.Exit(2)
	}
	if command.Do == "follow" {
		follow()
	} else {
		pay()
	}
}
