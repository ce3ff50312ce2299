package mcpresource

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// ErrAmbiguousBody means that a JSON-RPC body is malformed, or that two JSON decoders
// could read different requests out of it.
var ErrAmbiguousBody = errors.New("mcpresource: malformed or ambiguous JSON-RPC body")

var errEmptyBatch = ambiguous("an empty batch") // JSON-RPC 2.0 §6 has another code for it (RS-119)

const (
	maxBatch = 100
	maxDepth = 200
)

// envelope is what the guard needs of a body.
type envelope struct {
	ops   []Operation
	batch bool
	id    json.RawMessage // of a single request, for errors; nil otherwise
}

// parseEnvelope reads the operations of a JSON-RPC body. Decoders differ in what they
// do with duplicate keys, keys in another case, a second value after the first and
// invalid UTF-8; each of these has been used to show a guard one tool and the server
// another, so each is refused, in the envelope and in params.
func parseEnvelope(body []byte) (envelope, error) {
	if !utf8.Valid(body) {
		return envelope{}, ambiguous("invalid UTF-8")
	}
	body = bytes.Trim(body, " \t\r\n")
	if err := checkDepth(body); err != nil {
		return envelope{}, err
	}
	if len(body) > 0 && body[0] == '[' {
		return parseBatch(body)
	}
	ops, id, err := parseMessage(body)
	if err != nil {
		return envelope{}, err
	}
	return envelope{ops: ops, id: id}, nil
}

func parseBatch(body []byte) (envelope, error) {
	var list []json.RawMessage
	if err := json.Unmarshal(body, &list); err != nil {
		return envelope{}, ambiguous("not JSON")
	}
	switch n := len(list); {
	case n == 0:
		return envelope{}, errEmptyBatch
	case n > maxBatch:
		return envelope{}, ambiguous("a batch has up to 100 messages")
	}
	e := envelope{batch: true}
	for _, m := range list {
		ops, _, err := parseMessage(m)
		if err != nil {
			return envelope{}, err
		}
		e.ops = append(e.ops, ops...)
	}
	return e, nil
}

// parseMessage returns the operation of a message, and after it those it implies.
func parseMessage(b []byte) ([]Operation, json.RawMessage, error) {
	top, err := object(b, "jsonrpc", "id", "method", "params", "result", "error")
	if err != nil {
		return nil, nil, err
	}
	var op Operation
	if m, ok := top["method"]; ok { // without one it is a response
		if op.Method, ok = plainString(m); !ok || op.Method == "" {
			return nil, nil, ambiguous("method is not a string")
		}
	}
	var more []Operation
	switch p := top["params"]; {
	case len(p) > 0 && p[0] == '{':
		if more, err = parseParams(&op, p); err != nil {
			return nil, nil, err
		}
	case p != nil && string(p) != "null": // by position they are a call to some servers (JSON-RPC 2.0 §4.2); MCP has none
		return nil, nil, ambiguous("params is not an object")
	}
	if err := op.complete(top); err != nil {
		return nil, nil, err
	}
	for i := range more {
		more[i].implied = true
	}
	return append([]Operation{op}, more...), top["id"], nil
}

// complete refuses what is neither a call of something nor a response.
func (op Operation) complete(top map[string]json.RawMessage) error {
	switch {
	case (op.Method == "tools/call" || op.Method == "prompts/get") && op.Name == "":
		return ambiguous(op.Method + " without a name")
	case op.Method == "" && top["result"] == nil && top["error"] == nil:
		return ambiguous("neither a request nor a response")
	}
	return nil
}

func parseParams(op *Operation, b []byte) ([]Operation, error) {
	params, err := members(b, "name", "uri", "arguments", "_meta", "cursor", "ref", "argument", "notifications", "taskId", "requestState", "inputResponses")
	if err != nil {
		return nil, err
	}
	key := "name"
	if strings.HasPrefix(op.Method, "resources/") {
		key = "uri"
	}
	if v, ok := params[key]; ok && op.Method != "" {
		if op.Name, ok = plainString(v); !ok {
			return nil, ambiguous(key + " is not a string")
		}
	}
	op.Arguments = params["arguments"]
	return implied(op.Method, params)
}

// plainString decodes a JSON string. A NUL or a lone surrogate, which decoders treat
// differently, makes it no plain string.
func plainString(raw json.RawMessage) (string, bool) {
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	s, ok := unquote(raw)
	return s, ok && !strings.ContainsRune(s, 0) && !strings.ContainsRune(s, utf8.RuneError)
}

// checkDepth bounds nesting without decoding, so that a hostile body costs one pass.
func checkDepth(b []byte) error {
	depth, inString, escaped := 0, false, false
	for _, c := range b {
		switch {
		case escaped:
			escaped = false
		case inString && c == '\\':
			escaped = true
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return ambiguous("nested too deeply")
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return nil
}

func ambiguous(why string) error { return fmt.Errorf("%w: %s", ErrAmbiguousBody, why) }
