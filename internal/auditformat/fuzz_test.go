package auditformat

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/audit/verify"
)

// cefHead matches the part before the extension: seven fields with escaped bars and backslashes.
var cefHead = regexp.MustCompile(`^CEF:0(?:\|(?:[^|\\]|\\.)*){6}\|rt=-?[0-9]+ externalId=7 `)

// FuzzLine checks that text chosen by callers stays in its place on one line, and starts no other
// line, part or key (OB-06).
func FuzzLine(f *testing.F) {
	f.Add("login.succeeded", "user_name", "alice")
	f.Add("a|b\\", "reason", "x\r\ncs1=usr_2 \\\x00\u2028")
	f.Add("tool.called", "tool", "\xff\xfe{}\"")
	f.Fuzz(func(t *testing.T, event, field, value string) {
		e, err := Read(7, verify.Entry{Event: event, Fields: map[string]string{field: value}}.Leaf())
		if err != nil {
			t.Skip(err)
		}
		for _, format := range Formats {
			line := format.Line(source, e)
			if bytes.ContainsAny(line, "\r\n\x00") {
				t.Fatalf("%s: %q", format, line)
			}
			if format != CEF {
				if !json.Valid(line) {
					t.Fatalf("%s: %q", format, line)
				}
				continue
			}
			if !cefHead.Match(line) {
				t.Fatalf("%q", line)
			}
			for _, word := range strings.Split(string(line), " ")[3:] {
				key, _, ok := strings.Cut(word, "=")
				if ok && !strings.HasSuffix(key, `\`) && !strings.HasPrefix(key, "Mcpauthd") && !known[key] &&
					strings.Contains(value, word) {
					t.Fatalf("the value has made the key %q: %q", key, line)
				}
			}
		}
	})
}

// known lists the CEF keys that we write.
var known = map[string]bool{
	"rt": true, "externalId": true, "dvchost": true, "outcome": true, "suid": true, "suser": true, "reason": true,
	"request": true, "src": true, "c6a2": true, "c6a2Label": true, "cs1": true, "cs1Label": true, "cs2": true,
	"cs2Label": true, "cs3": true, "cs3Label": true, "cs4": true, "cs4Label": true, "cs5": true, "cs5Label": true,
	"cs6": true, "cs6Label": true,
}
