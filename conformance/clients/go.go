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
	Do, URL, Query, Saved string
	Tokens                []string
	Input                 object
}

var final = map[string]bool{"BAD_USER_INPUT": true, "FORBIDDEN": true, "NOT_FOUND": true, "TOO_COMPLEX": true,
	"GRAPHQL_PARSE_FAILED": true, "GRAPHQL_VALIDATION_FAILED": true}

// Every other code, such as one of a proxy, does not say how far a payment came.
var movedNothing = map[string]bool{"BAD_USER_INPUT": true, "UNAUTHENTICATED": true, "FORBIDDEN": true,
	"PERSISTED_QUERY_NOT_SUPPORTED": true, "TOO_COMPLEX": true, "CURSOR_INVALID": true, "EVENTS_GAP": true,
	"UPSTREAM_TIMEOUT": true, "UPSTREAM_UNAVAILABLE": true, "UPSTREAM_RATE_LIMITED": true, "UPSTREAM_INVALID": true,
	"RATE_LIMITED": true, "STORE_UNAVAILABLE": true, "PAYMENTS_STOPPED": true, "DRAINING": true,
	"GRAPHQL_PARSE_FAILED": true, "GRAPHQL_VALIDATION_FAILED": true}

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

func ask(query string, variables object) (answer result, err error) {
	response, _, err := post(query, variables, "application/json")
	if err != nil {
		return
	}
	defer response.Body.Close()
	err = json.NewDecoder(response.Body).Decode(&answer)
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
		answer, err := ask("query { eventCursor }", object{})
		var head *string
		if err == nil && json.Unmarshal(answer.Data["eventCursor"], &head) == nil && head != nil {
			return *head
		}
		code, least, retryable, _ := failure(answer)
		if final[code] && !retryable {
			say("refused", code)
			os.Exit(0)
		}
		pause(tries, least)
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
				seconds, _ := strconv.ParseFloat(response.Header.Get("Retry-After"), 64)
				least = seconds * 1000
				text, _ := io.ReadAll(response.Body)
				take(map[string]string{"event": "next", "data": string(text)})
			}
			response.Body.Close()
		}
		if !refused {
			pause(tries, least)
		}
	}
}

func pay() {
	// An app keeps the key beside the input before it sends anything (P2), and goes on with it after a restart.
	random := make([]byte, 16)
	rand.Read(random)
	input := object{"idempotencyKey": fmt.Sprintf("%x", random)}
	for name, value := range command.Input {
		input[name] = value
	}
	unclear := false
	for tries, until := 0, time.Now().Add(time.Minute); time.Now().Before(until); tries++ {
		answer, err := ask(command.Query, object{"input": input})
		var told struct {
			Typename    string `json:"__typename"`
			Code        string
			SafeToRetry bool
		}
		least := 0.0
		if err != nil {
			unclear = true
		} else if json.Unmarshal(answer.Data["createMoneyOut"], &told) != nil || told.Typename == "" {
			code, asked, retryable, _ := failure(answer)
			least = asked
			unclear = unclear || !movedNothing[code]
			for _, told := range answer.Errors {
				// An error within the result says that the mutation was executed.
				unclear = unclear || len(told.Path) > 1
			}
			if final[code] && !retryable {
				if unclear {
					break
				}
				say("refused", code)
				return
			}
		} else if strings.HasSuffix(told.Typename, "Success") {
			say("done", true)
			return
		} else if told.Typename == "OutcomeUnknown" || told.Code == "IDEMPOTENCY_IN_PROGRESS" {
			unclear = true
			if told.Typename == "OutcomeUnknown" && !told.SafeToRetry {
				break
			}
		} else if told.Code == "IDEMPOTENCY_KEY_REUSED" {
			break
		} else if !unclear {
			say("refused", told.Code)
			return
		}
		pause(tries, least)
	}
	say("unknown", true)
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
