package auditformat

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/mcp-authd/mcp-authd/internal/label"
)

// hidden reports whether a character is invisible, or changes how its neighbors are shown. On the
// screen of a SIEM or in a terminal, an entry with such characters could be misread.
func hidden(r rune) bool { return label.Invisible(r) || unicode.In(r, unicode.Zl, unicode.Zp) }

// Visible returns text with invisible characters replaced by names such as [U+202E]. Line ends
// stay, because each format encodes them in its own way.
func Visible(s string) string {
	if strings.IndexFunc(s, hidden) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if hidden(r) && r != '\n' && r != '\r' {
			fmt.Fprintf(&b, "[U+%04X]", r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// visible returns an entry with the texts of others made visible. Its hash is still that of the
// leaf.
func (e Entry) visible() Entry {
	fields := make(map[string]string, len(e.Fields))
	for name, value := range e.Fields {
		fields[Visible(name)] = Visible(value)
	}
	e.Event, e.Fields = Visible(e.Event), fields
	return e
}

// inASCII replaces the hidden characters in JSON texts with JSON escapes, so that a parser gets
// them unchanged.
func inASCII(json []byte) []byte {
	if bytes.IndexFunc(json, hidden) < 0 {
		return json
	}
	var b bytes.Buffer
	for _, r := range string(json) {
		switch high, low := utf16.EncodeRune(r); {
		case !hidden(r):
			b.WriteRune(r)
		case r > 0xFFFF:
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.Bytes()
}
