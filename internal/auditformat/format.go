// Package auditformat writes entries of the audit log as other programs read them: JSON, OCSF and CEF
// (OB-06). A line is a pure function of an entry, so that the same entry has the same line whenever and
// by whatever it is written.
package auditformat

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/mcp-authd/mcp-authd/audit/verify"
)

// Format is how an entry is written.
type Format string

// The formats.
const (
	JSON Format = "json" // View
	OCSF Format = "ocsf" // Open Cybersecurity Schema Framework
	CEF  Format = "cef"  // Common Event Format
)

// Formats are all of them.
var Formats = []Format{JSON, OCSF, CEF}

// Parse returns the format of a name.
func Parse(name string) (Format, error) {
	if f := Format(name); slices.Contains(Formats, f) {
		return f, nil
	}
	return "", fmt.Errorf("%q is not one of json, ocsf, cef", name)
}

// Source is the server that has the log.
type Source struct {
	Issuer  string
	Version string // of the program
}

// host is the issuer without its scheme, as logs are named.
func (s Source) host() string {
	if u, err := url.Parse(s.Issuer); err == nil && u.Host != "" {
		return u.Host + strings.TrimSuffix(u.Path, "/")
	}
	return s.Issuer
}

// Entry is an entry of the log at its place.
type Entry struct {
	verify.Entry
	Index    int64
	Leaf     verify.Hash
	Unproven string // why the entry is not proven, as far as it was looked at
}

// Read reads the leaf of an entry.
func Read(index int64, leaf []byte) (Entry, error) {
	e, err := verify.ParseEntry(leaf)
	if err != nil {
		return Entry{}, fmt.Errorf("entry %d cannot be read, run: mcp-authd audit verify: %w", index, err)
	}
	return Entry{Entry: e, Index: index, Leaf: verify.LeafHash(leaf)}, nil
}

// Line is an entry on one line, without its end. It has no line end within.
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

// oneLine is a value as JSON. All values here can be written.
func oneLine(v any) []byte {
	var b strings.Builder
	out := json.NewEncoder(&b)
	out.SetEscapeHTML(false)
	if err := out.Encode(v); err != nil {
		panic(err)
	}
	return inASCII([]byte(strings.TrimSuffix(b.String(), "\n")))
}

// fields are those of an entry, of which it is known which have been written.
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

// take is a field that has a place of its own.
func (f *fields) take(name string) string {
	delete(f.left, name)
	return f.all[name]
}
