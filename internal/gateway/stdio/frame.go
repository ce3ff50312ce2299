package stdio

import (
	"bytes"
	"encoding/json"
	"errors"
)

// frame is the envelope of a JSON-RPC message. Its members are not changed.
type frame struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   json.RawMessage `json:"error,omitempty"`

	list bool // it answers a request for a list
}

var errFrame = errors.New("not a JSON-RPC message")

func (f *frame) isCall() bool   { return f.Method != "" && len(f.ID) > 0 }
func (f *frame) isNote() bool   { return f.Method != "" && len(f.ID) == 0 }
func (f *frame) isAnswer() bool { return f.Method == "" && len(f.ID) > 0 }

// wholeID reports whether the id is a string or an integer (MCP, "Requests", RS-67). Clients must
// comply. A program may return an id in another number format than it got.
func (f *frame) wholeID() bool {
	var n int64
	return len(f.ID) == 0 || f.ID[0] == '"' || json.Unmarshal(f.ID, &n) == nil
}

func (f *frame) check() error {
	switch {
	case f.Version != "2.0", f.Method == "" && len(f.ID) == 0:
		return errFrame
	case f.Method == "" && (f.Result == nil) == (f.Error == nil):
		return errFrame // a response has exactly one of the two (RS-68)
	case f.Method != "" && (f.Result != nil || f.Error != nil):
		return errFrame
	case len(f.ID) > 0 && f.ID[0] != '"' && f.ID[0] != '-' && (f.ID[0] < '0' || f.ID[0] > '9'):
		return errFrame // MCP: must be a string or a number
	}
	return nil
}

// decode parses a message or a batch of messages. It does not retain b.
func decode(b []byte) (frames []frame, batch bool, err error) {
	b = bytes.TrimSpace(b)
	if len(b) > 0 && b[0] == '[' {
		batch, err = true, json.Unmarshal(b, &frames)
	} else {
		frames = make([]frame, 1)
		err = json.Unmarshal(b, &frames[0])
	}
	if err != nil || len(frames) == 0 {
		return nil, batch, errFrame
	}
	for i := range frames {
		if err := frames[i].check(); err != nil {
			return nil, batch, err
		}
	}
	return frames, batch, nil
}

// encode returns the message as one line.
func (f frame) encode() []byte {
	f.Version = "2.0"
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(f) != nil {
		return nil // unreachable: raw members were parsed from JSON
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// failure returns an error response.
func failure(id json.RawMessage, code int, message string) frame {
	b, _ := json.Marshal(map[string]any{"code": code, "message": message}) // cannot fail
	return frame{ID: id, Error: b}
}

// members returns the members of a JSON object, or nil if raw is not an object.
func members(raw json.RawMessage) map[string]json.RawMessage {
	var m map[string]json.RawMessage
	if json.Unmarshal(raw, &m) != nil {
		return nil
	}
	return m
}

// with returns the object raw with value set under a path of names. It returns raw unchanged if raw
// is not an object.
func with(raw json.RawMessage, value json.RawMessage, path ...string) json.RawMessage {
	m := members(raw)
	if m == nil {
		return raw
	}
	if len(path) > 1 {
		value = with(m[path[0]], value, path[1:]...)
	}
	m[path[0]] = value
	b, err := json.Marshal(m)
	if err != nil {
		return raw
	}
	return b
}

// at returns the member of raw under a path of names, or nil.
func at(raw json.RawMessage, path ...string) json.RawMessage {
	for _, name := range path {
		if raw = members(raw)[name]; raw == nil {
			return nil
		}
	}
	return raw
}

// text returns the JSON string raw, or "" if raw is not a string.
func text(raw json.RawMessage) (s string) {
	_ = json.Unmarshal(raw, &s) // s stays "" on error
	return s
}

// same reports whether two ids, or tokens, are equal. A program may return a number or a string in
// another notation.
func same(a, b json.RawMessage) bool {
	if len(a) == 0 || len(b) == 0 {
		return false
	}
	var x, y any
	return string(a) == string(b) || json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && x == y
}
