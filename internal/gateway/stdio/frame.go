package stdio

import (
	"bytes"
	"encoding/json"
	"errors"
)

// frame is the envelope of a JSON-RPC message. What is in it stays as it is.
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

// wholeID reports whether the id is no number with a fraction (MCP, "Requests", RS-67). Clients
// are held to it; a program may write the id that it was given as another number.
func (f *frame) wholeID() bool {
	var n int64
	return len(f.ID) == 0 || f.ID[0] == '"' || json.Unmarshal(f.ID, &n) == nil
}

func (f *frame) check() error {
	switch {
	case f.Version != "2.0", f.Method == "" && len(f.ID) == 0:
		return errFrame
	case f.Method == "" && (f.Result == nil) == (f.Error == nil):
		return errFrame // an answer is one of the two (RS-68)
	case f.Method != "" && (f.Result != nil || f.Error != nil):
		return errFrame
	case len(f.ID) > 0 && f.ID[0] != '"' && f.ID[0] != '-' && (f.ID[0] < '0' || f.ID[0] > '9'):
		return errFrame // MCP: a string or a number
	}
	return nil
}

// decode reads a message or a batch of them. b is not used afterwards.
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

// encode writes a message on one line.
func (f frame) encode() []byte {
	f.Version = "2.0"
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(f) != nil {
		return nil // raw members were read from JSON, so it does not come to this
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// failure is the answer to a call that has none.
func failure(id json.RawMessage, code int, message string) frame {
	b, _ := json.Marshal(map[string]any{"code": code, "message": message}) // always encodes
	return frame{ID: id, Error: b}
}

// members are those of a JSON object; nil for anything else.
func members(raw json.RawMessage) map[string]json.RawMessage {
	var m map[string]json.RawMessage
	if json.Unmarshal(raw, &m) != nil {
		return nil
	}
	return m
}

// with returns the object raw with another member under a path of names. What is not an
// object is returned unchanged.
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

// at returns the member of raw under a path of names, nil when there is none.
func at(raw json.RawMessage, path ...string) json.RawMessage {
	for _, name := range path {
		if raw = members(raw)[name]; raw == nil {
			return nil
		}
	}
	return raw
}

// text returns the string that raw is, "" for anything else.
func text(raw json.RawMessage) (s string) {
	_ = json.Unmarshal(raw, &s) // "" then
	return s
}

// same reports whether two ids, or tokens, are one: a program may write a number or a
// string otherwise than it read it.
func same(a, b json.RawMessage) bool {
	if len(a) == 0 || len(b) == 0 {
		return false
	}
	var x, y any
	return string(a) == string(b) || json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && x == y
}
