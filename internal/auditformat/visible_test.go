package auditformat

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/audit/verify"
)

// TestHidden checks that characters that are invisible or change the direction of text are shown by
// name (OB-06). JSON contains them only as escapes, so no line contains one itself.
func TestHidden(t *testing.T) {
	const name, field = "al\u202Eice\u2066\u200B\u009B\u2028\u061C\U000E0041\t.", "od\u202Ed"
	const want = "al[U+202E]ice[U+2066][U+200B][U+009B][U+2028][U+061C][U+E0041][U+0009]."
	e, err := Read(7, verify.Entry{Event: "a\u202Eb", Fields: map[string]string{
		"user_name": name, "tool": name, "scope": name, field: name, "reason": "line\nline",
	}}.Leaf())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range Formats {
		line := f.Line(source, e)
		if at := bytes.IndexFunc(line, hidden); at >= 0 {
			t.Errorf("%s: got %q at byte %d", f, line, at)
		}
		if n := strings.Count(string(line), want); (f == JSON) != (n == 0) || f != JSON && n < 4 {
			t.Errorf("%s: got it %d times in %s", f, n, line)
		}
		if n := strings.Count(string(line), `line\nline`); n != 1 {
			t.Errorf("%s: the line end is not as the format has it: %s", f, line)
		}
	}
	var view View
	if err := json.Unmarshal(JSON.Line(source, e), &view); err != nil {
		t.Fatal(err)
	}
	if view.Event != "a\u202Eb" || view.Fields["user_name"] != name || view.Fields[field] != name {
		t.Errorf("JSON: got %q, %q", view.Event, view.Fields)
	}
}
