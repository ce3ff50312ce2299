package gosdk

import (
	"bytes"
	"encoding/json"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	protocol "github.com/mcp-authd/mcp-authd/internal/mcp"
)

// body is a partially decoded body, before the SDK reads it. The guard ensured that all decoders
// read it the same way.
type body struct {
	messages []message // at least one
	batch    bool
}

type message struct {
	ID     json.RawMessage `json:"id"` // nil if absent
	Method *string         `json:"method"`
	Params struct {
		Meta    map[string]json.RawMessage `json:"_meta"`
		Request json.RawMessage            `json:"requestId"`       // of notifications/cancelled
		Version json.RawMessage            `json:"protocolVersion"` // of initialize
		// The SDK's types lack these.
		Task          json.RawMessage `json:"task"`
		TaskID        json.RawMessage `json:"taskId"`
		Notifications json.RawMessage `json:"notifications"`
	} `json:"params"`
}

// look decodes a body. Params that are not an object are left to the SDK, which rejects them.
func look(b []byte) (body, *refusal) {
	b = bytes.TrimLeft(b, " \t\r\n")
	if len(b) == 0 || b[0] != '[' {
		m, refused := lookAt(b)
		return body{messages: []message{m}}, refused
	}
	var list []json.RawMessage
	if err := json.Unmarshal(b, &list); err != nil {
		return body{}, &refusal{http.StatusBadRequest, jsonrpc.CodeParseError, "The message is not JSON.", nil}
	}
	if len(list) == 0 {
		return body{}, invalid(nil, "A batch must have at least one message.")
	}
	out := body{batch: true}
	for _, raw := range list {
		m, refused := lookAt(raw)
		if refused != nil {
			return body{}, refused
		}
		out.messages = append(out.messages, m)
	}
	return out, nil
}

func lookAt(b []byte) (m message, refused *refusal) {
	if err := json.Unmarshal(b, &m); err != nil {
		if !json.Valid(b) {
			return m, &refusal{http.StatusBadRequest, jsonrpc.CodeParseError, "The message is not JSON.", nil}
		}
		if len(b) == 0 || b[0] != '{' {
			return m, invalid(nil, "A message is a JSON object.")
		}
		m.Params.Meta = nil // some member has a wrong type; the SDK reports it
	}
	if !m.validID() {
		return m, invalid(nil, "The id has to be a string or an integer.")
	}
	return m, nil
}

func (m message) isRequest() bool { return m.Method != nil }

// validID reports whether the id is allowed (RS-67). The SDK treats a request with a null id as a
// notification, and truncates fractions.
func (m message) validID() bool {
	switch {
	case m.ID == nil || m.ID[0] == '"':
		return true
	case m.ID[0] != '-' && (m.ID[0] < '0' || m.ID[0] > '9'):
		return false
	}
	var n int64
	return json.Unmarshal(m.ID, &n) == nil
}

func (m message) metaVersion() (v string) {
	if raw := m.Params.Meta[mcp.MetaKeyProtocolVersion]; raw != nil {
		_ = json.Unmarshal(raw, &v) // anything but a string means no version
	}
	return v
}

// requested returns the revision in initialize.
func (m message) requested() (v string) {
	_ = json.Unmarshal(m.Params.Version, &v) // anything but a string means no version
	return v
}

func (m message) isModern() bool { return protocol.IsStateless(m.metaVersion()) }

// id returns the id of a single request, for errors.
func (b body) id() json.RawMessage {
	if b.batch || !b.messages[0].isRequest() {
		return nil
	}
	return b.messages[0].ID
}

// listens reports whether a body opens a stream that stays open.
func (b body) listens() bool {
	return !b.batch && b.messages[0].isRequest() && *b.messages[0].Method == "subscriptions/listen"
}

func (b body) opens() bool {
	return !b.batch && b.messages[0].isRequest() && *b.messages[0].Method == "initialize"
}
