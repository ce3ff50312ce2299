package verify

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/tlog"
)

// Entry is one entry of the log.
type Entry struct {
	At     time.Time // millisecond precision
	Event  string    // for example "consent.approved"
	Fields map[string]string
	// MAC names and authenticates the writer; only the installation can check it. It is empty in
	// entries by older versions.
	MAC string
}

const moment = "2006-01-02T15:04:05.000Z"

// Leaf returns the bytes to hash: the entry in canonical JSON.
func (e Entry) Leaf() []byte {
	fields := make([]Field, 0, len(e.Fields))
	for _, name := range slices.Sorted(maps.Keys(e.Fields)) {
		fields = append(fields, Field{name, e.Fields[name]})
	}
	leaf := AppendLeaf(make([]byte, 0, 512), e.At, e.Event, fields)
	if e.MAC != "" {
		leaf = WithMAC(leaf, e.MAC)
	}
	return leaf
}

// MACField is the field of a leaf with the MAC. Entry.Fields omits it. Its name sorts last, so that
// adding a MAC changes only the end of a leaf.
const MACField = "~mac"

const macMember = `"` + MACField + `":"`

// WithMAC returns a copy of a leaf without a MAC, with the MAC added.
func WithMAC(leaf []byte, mac string) []byte {
	bare := leaf[:len(leaf)-len("}}")]
	out := append(make([]byte, 0, len(leaf)+len(macMember)+len(mac)+2), bare...)
	if bare[len(bare)-1] != '{' {
		out = append(out, ',')
	}
	out = append(append(out, `"`+MACField+`":`...), appendText(nil, mac)...)
	return append(out, "}}"...)
}

// CutMAC splits a leaf into the leaf without its MAC, and the MAC or "". Text cannot imitate a MAC,
// because quotation marks are escaped.
func CutMAC(leaf []byte) (bare []byte, mac string) {
	at := bytes.LastIndex(leaf, []byte(macMember))
	begin, end := at+len(macMember), len(leaf)-len(`"}}`)
	if at < 1 || begin > end || !plain(string(leaf[begin:end])) || !bytes.HasSuffix(leaf, []byte(`"}}`)) {
		return leaf, ""
	}
	bare = leaf[:at]
	if bare[at-1] == ',' {
		bare = bare[:at-1]
	} else if bare[at-1] != '{' {
		return leaf, ""
	}
	return append(bytes.Clone(bare), "}}"...), string(leaf[begin:end])
}

// Field is a named text of an entry.
type Field struct{ Name, Text string }

// AppendLeaf is Entry.Leaf without a map: it appends to b. The fields must be sorted by name,
// without duplicates.
func AppendLeaf(b []byte, at time.Time, event string, fields []Field) []byte {
	b = append(b, `{"at":"`...)
	b = at.UTC().AppendFormat(b, moment)
	b = append(b, `","event":`...)
	b = appendText(b, event)
	b = append(b, `,"fields":{`...)
	for i, f := range fields {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendText(b, f.Name)
		b = append(b, ':')
		b = appendText(b, f.Text)
	}
	return append(b, "}}"...)
}

// LeafHash returns the hash of a leaf (RFC 9162 §2.1.1).
func LeafHash(leaf []byte) Hash { return tlog.RecordHash(leaf) }

// appendText appends a string as in RFC 8785 §3.2.2.2. Invalid UTF-8 is replaced with U+FFFD.
func appendText(b []byte, s string) []byte {
	b = append(b, '"')
	if plain(s) {
		return append(append(b, s...), '"')
	}
	for _, r := range strings.ToValidUTF8(s, "\uFFFD") {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\b':
			b = append(b, `\b`...)
		case r == '\t':
			b = append(b, `\t`...)
		case r == '\n':
			b = append(b, `\n`...)
		case r == '\f':
			b = append(b, `\f`...)
		case r == '\r':
			b = append(b, `\r`...)
		case r < 0x20:
			b = fmt.Appendf(b, `\u%04x`, r)
		default:
			b = append(b, string(r)...)
		}
	}
	return append(b, '"')
}

// plain reports whether a text is ASCII without characters to escape.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c >= 0x80 || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// ParseEntry reads a leaf. It returns an error if the leaf is not an entry in canonical JSON.
func ParseEntry(leaf []byte) (Entry, error) {
	var in struct {
		At     string            `json:"at"`
		Event  string            `json:"event"`
		Fields map[string]string `json:"fields"`
	}
	if err := json.Unmarshal(leaf, &in); err != nil {
		return Entry{}, fmt.Errorf("verify: an entry cannot be read: %w", err)
	}
	at, err := time.Parse(moment, in.At)
	if err != nil {
		return Entry{}, fmt.Errorf("verify: the time of an entry cannot be read: %w", err)
	}
	e := Entry{At: at, Event: in.Event, Fields: in.Fields, MAC: in.Fields[MACField]}
	delete(in.Fields, MACField)
	if !bytes.Equal(e.Leaf(), leaf) {
		return Entry{}, fmt.Errorf("verify: an entry is not in canonical JSON: %.200q", leaf)
	}
	return e, nil
}
