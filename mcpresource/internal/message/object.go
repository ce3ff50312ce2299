package message

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/mcp-authd/mcp-authd/internal/strictjson"
)

// object splits exactly one JSON object into its members.
func object(b []byte, known ...string) (strictjson.Members, error) {
	if !json.Valid(b) || !utf8.Valid(b) {
		return nil, strictjson.ErrSyntax
	}
	return members(b, known...)
}

// members is object for part of a valid text. No key may be repeated, or differ from a known one
// only in case. Other keys may differ only in case, because clients and servers choose some of them.
func members(b []byte, known ...string) (strictjson.Members, error) {
	return strictjson.Split(b, strictjson.Exact, known...)
}

// plainString decodes a JSON string. ok is false if it contains NUL or a lone surrogate, which
// decoders treat differently.
func plainString(raw json.RawMessage) (string, bool) {
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	s, ok := strictjson.Unquote(raw)
	return s, ok && !strings.ContainsRune(s, 0) && !strings.ContainsRune(s, utf8.RuneError)
}

// checkDepth limits the nesting of a message.
func checkDepth(b []byte) error { return strictjson.CheckDepth(b, maxDepth) }
