package auditformat

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/mcp-authd/mcp-authd/internal/label"
)

// hidden reports characters that cannot be seen, or change how those beside them are shown: on the screen of
// a SIEM, or in a terminal, an entry with them could be read as another one.
func hidden(r rune) bool { return label.Invisible(r) || unicode.In(r, unicode.Zl, unicode.Zp) }

// Visible is text in which characters that cannot be seen are named, such as [U+202E]. Line ends stay: each
// format has its own way to write them.
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

// visible is an entry with what others have chosen as people are to see it. Its hash is still that of the leaf.
func (e Entry) visible() Entry {
	fields := make(map[string]string, len(e.Fields))
	for name, value := range e.Fields {
		fields[Visible(name)] = Visible(value)
	}
	e.Event, e.Fields = Visible(e.Event), fields
	return e
}

// inASCII writes the hidden characters of JSON, which are within its texts, as its escapes: who reads it gets
// them as they were.
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
