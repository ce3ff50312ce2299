package toolwatch

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"unicode/utf8"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// maxText is the maximum length of a definition that is stored for people to read.
const maxText = 32 << 10 // bytes

// canonical returns the form of a definition that is compared: all members, ordered by name,
// without white space. A definition that decoders could read differently is compared in its raw
// form. text is "" if it is too long to be stored. digest covers the whole definition.
func canonical(entry []byte) (text string, digest storage.Hash) {
	d := json.NewDecoder(bytes.NewReader(entry))
	d.UseNumber()
	var v any
	out := entry
	if utf8.Valid(entry) && d.Decode(&v) == nil && countKeys(v) == writtenKeys(entry) {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if e.Encode(v) == nil {
			out = bytes.TrimSpace(b.Bytes())
		}
	}
	if len(out) <= maxText {
		text = string(bytes.ToValidUTF8(out, []byte("\ufffd")))
	}
	return text, sha256.Sum256(out)
}

// writtenKeys counts the colons outside of strings, which is the number of keys including repeated
// ones.
func writtenKeys(raw []byte) (n int) {
	quoted := false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case c == '"':
			quoted = !quoted
		case quoted && c == '\\':
			i++
		case !quoted && c == ':':
			n++
		}
	}
	return n
}

func countKeys(v any) (n int) {
	switch v := v.(type) {
	case map[string]any:
		n = len(v)
		for _, member := range v {
			n += countKeys(member)
		}
	case []any:
		for _, element := range v {
			n += countKeys(element)
		}
	}
	return n
}
