// Package message reads the methods, names and arguments of the JSON-RPC messages in a request
// body. It reads strictly, because decoders differ for duplicate keys, keys in another case, a
// second value after the first, and invalid UTF-8. Each of these differences has been used to show
// a guard one tool and the server another.
package message

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mcp-authd/mcp-authd/internal/strictjson"
)

// ErrEmptyBatch is the error for an empty array, which has a separate code in JSON-RPC 2.0 §6
// (RS-119). All errors of this package mean that the text is malformed, or that decoders could read
// it differently.
var ErrEmptyBatch = errors.New("an empty batch")

const (
	maxBatch = 100
	maxDepth = 200
)

// Envelope is the decoded content of a body.
type Envelope struct {
	Messages []Message
	ID       json.RawMessage // of a single request, for errors; nil otherwise
}

// Message is one JSON-RPC message.
type Message struct {
	Method    string          // "" for a response
	Name      string          // params.name, or params.uri of resource methods
	Arguments json.RawMessage // params.arguments, nil if absent
	Meta      json.RawMessage // params._meta, nil if absent
	Task      string          // params.taskId of task methods
	// Capabilities are params.capabilities of initialize, nil if absent.
	Capabilities json.RawMessage
	ID           json.RawMessage // nil for a notification
	Implied      bool            // implied by the previous message
}

// Opens reports whether one of the messages opens a session.
func (e Envelope) Opens() bool { return e.calls("initialize") }

// Streams reports whether one of the messages opens a stream that stays open.
func (e Envelope) Streams() bool { return e.calls("subscriptions/listen") }

func (e Envelope) calls(method string) bool {
	return slices.ContainsFunc(e.Messages, func(m Message) bool { return m.Method == method })
}

// Parse reads a body. It rejects text that decoders read differently, in the envelope and in
// params.
func Parse(body []byte) (Envelope, error) {
	if !utf8.Valid(body) {
		return Envelope{}, errors.New("invalid UTF-8")
	}
	body = bytes.Trim(body, " \t\r\n")
	if err := checkDepth(body); err != nil {
		return Envelope{}, err
	}
	if len(body) > 0 && body[0] == '[' {
		return parseBatch(body)
	}
	messages, id, err := parseMessage(body)
	if err != nil {
		return Envelope{}, err
	}
	return Envelope{Messages: messages, ID: id}, nil
}

func parseBatch(body []byte) (Envelope, error) {
	var list []json.RawMessage
	if err := json.Unmarshal(body, &list); err != nil {
		return Envelope{}, errors.New("not JSON")
	}
	switch n := len(list); {
	case n == 0:
		return Envelope{}, ErrEmptyBatch
	case n > maxBatch:
		return Envelope{}, errors.New("a batch must have at most 100 messages")
	}
	var e Envelope
	for _, raw := range list {
		messages, _, err := parseMessage(raw)
		if err != nil {
			return Envelope{}, err
		}
		e.Messages = append(e.Messages, messages...)
	}
	return e, nil
}

// parseMessage returns a message, followed by the messages that it implies.
func parseMessage(b []byte) ([]Message, json.RawMessage, error) {
	top, err := object(b, "jsonrpc", "id", "method", "params", "result", "error")
	if err != nil {
		return nil, nil, err
	}
	var m Message
	if method := top.Get("method"); method != nil { // without a method it is a response
		var ok bool
		if m.Method, ok = plainString(method); !ok || m.Method == "" {
			return nil, nil, errors.New("method is not a string")
		}
	}
	var more []Message
	switch p := top.Get("params"); {
	case len(p) > 0 && p[0] == '{':
		if more, err = parseParams(&m, p); err != nil {
			return nil, nil, err
		}
	// To some servers, positional params are a call (JSON-RPC 2.0 §4.2); MCP has none.
	case p != nil && string(p) != "null":
		return nil, nil, errors.New("params is not an object")
	}
	m.ID = top.Get("id")
	if err := m.complete(top); err != nil {
		return nil, nil, err
	}
	for i := range more {
		more[i].Implied = true
	}
	return append([]Message{m}, more...), m.ID, nil
}

// complete returns an error for a message that is neither a complete call nor a response.
func (m Message) complete(top strictjson.Members) error {
	switch {
	case (m.Method == "tools/call" || m.Method == "prompts/get") && m.Name == "":
		return errors.New(m.Method + " without a name")
	case m.Method == "" && top.Get("result") == nil && top.Get("error") == nil:
		return errors.New("neither a request nor a response")
	}
	return nil
}

func parseParams(m *Message, b []byte) ([]Message, error) {
	params, err := members(b, "name", "uri", "arguments", "_meta", "cursor", "ref", "argument",
		"notifications", "task", "taskId", "requestState", "inputResponses", "capabilities")
	if err != nil {
		return nil, err
	}
	key := "name"
	if strings.HasPrefix(m.Method, "resources/") {
		key = "uri"
	}
	var ok bool
	if v := params.Get(key); v != nil && m.Method != "" {
		if m.Name, ok = plainString(v); !ok {
			return nil, errors.New(key + " is not a string")
		}
	}
	m.Arguments, m.Meta = params.Get("arguments"), params.Get("_meta")
	if v := params.Get("taskId"); v != nil && strings.HasPrefix(m.Method, "tasks/") {
		if m.Task, ok = plainString(v); !ok {
			return nil, errors.New("taskId is not a string")
		}
	}
	if m.Method == "initialize" {
		m.Capabilities = params.Get("capabilities")
	}
	return implied(m.Method, params)
}
