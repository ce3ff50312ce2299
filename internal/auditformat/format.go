// Package auditformat writes audit log entries in formats for other programs: JSON, OCSF and CEF
// (OB-06). A line is a pure function of an entry, so the same entry always has the same line.
package auditformat

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/mcp-authd/mcp-authd/audit/verify"
)

// Format is the format of an entry.
type Format string

// The formats.
const (
	JSON Format = "json" // View
	OCSF Format = "ocsf" // Open Cybersecurity Schema Framework
	CEF  Format = "cef"  // Common Event Format
)

// Formats lists all formats.
var Formats = []Format{JSON, OCSF, CEF}

// Parse returns the format with a name.
func Parse(name string) (Format, error) {
	if f := Format(name); slices.Contains(Formats, f) {
		return f, nil
	}
	return "", fmt.Errorf("%q is not one of json, ocsf, cef", name)
}

// Source is the server of the log.
type Source struct {
	Issuer  string
	Version string // of the program
}

// host returns the issuer without its scheme, as in the names of logs.
func (s Source) host() string {
	if u, err := url.Parse(s.Issuer); err == nil && u.Host != "" {
		return u.Host + strings.TrimSuffix(u.Path, "/")
	}
	return s.Issuer
}

// Entry is an entry of the log with its index.
type Entry struct {
	verify.Entry
	Index    int64
	Leaf     verify.Hash
	Unproven string // why the entry is not proven, if it was checked
}

// Read parses the leaf of an entry.
func Read(index int64, leaf []byte) (Entry, error) {
	e, err := verify.ParseEntry(leaf)
	if err != nil {
		return Entry{}, fmt.Errorf("entry %d cannot be read, run: mcp-authd audit verify: %w", index, err)
	}
	return Entry{Entry: e, Index: index, Leaf: verify.LeafHash(leaf)}, nil
}

// Line returns an entry as one line, without its line end. It contains no line ends.
func (f Format) Line(s Source, e Entry) []byte {
	switch f {
	case OCSF:
		return oneLine(ocsf(s, e))
	case CEF:
		return cef(s, e)
	default:
		return oneLine(ViewOf(e))
	}
}

// oneLine returns a value as JSON. All values here can be encoded.
func oneLine(v any) []byte {
	var b strings.Builder
	out := json.NewEncoder(&b)
	out.SetEscapeHTML(false)
	if err := out.Encode(v); err != nil {
		panic(err)
	}
	return inASCII([]byte(strings.TrimSuffix(b.String(), "\n")))
}

// fields tracks which fields of an entry have been written.
type fields struct {
	all  map[string]string
	left map[string]string
}

func newFields(e Entry) *fields {
	f := &fields{all: e.Fields, left: make(map[string]string, len(e.Fields)+1)}
	for name, value := range e.Fields {
		f.left[name] = value
	}
	if e.Unproven != "" {
		f.left["unproven"] = e.Unproven
	}
	return f
}

// take returns a field that has its own place, and marks it as written.
func (f *fields) take(name string) string {
	delete(f.left, name)
	return f.all[name]
}
