// Package audittest holds what programs log against the table of events and fields in
// docs/operating.md.
package audittest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// Table is what the documentation says of the log.
type Table struct {
	Events map[string][]string // the fields that an event has beside the common ones
	Fields []string            // that any event, or the line of any request, may have
}

var (
	eventRow = regexp.MustCompile("(?m)^\\| `([a-z]+\\.[a-z_]+)` \\|[^|]*\\|([^|]*)\\|$")
	fieldRow = regexp.MustCompile("(?m)^\\| ((?:`[a-z_]+`(?:, )?)+) \\|[^|]*\\|$")
	name     = regexp.MustCompile("`([a-z_]+)`")
)

// Read reads the table.
func Read(t testing.TB) Table {
	t.Helper()
	_, self, _, _ := runtime.Caller(0)
	b, err := os.ReadFile(filepath.Join(filepath.Dir(self), "../../../docs/operating.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(b), "\n### Events and fields\n")
	if !ok {
		t.Fatal(`docs/operating.md has no section "Events and fields"`)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	out := Table{Events: map[string][]string{}}
	for _, m := range eventRow.FindAllStringSubmatch(section, -1) {
		out.Events[m[1]] = names(m[2])
	}
	for _, m := range fieldRow.FindAllStringSubmatch(section, -1) {
		out.Fields = append(out.Fields, names(m[1])...)
	}
	return out
}

func names(cell string) (out []string) {
	for _, m := range name.FindAllStringSubmatch(cell, -1) {
		out = append(out, m[1])
	}
	return out
}

// handler are the fields that a log has of itself.
var handler = []string{"time", "level", "msg", "event"}

// Check fails the test for each event in a JSON log that the table does not have, and for
// each field that it does not have there.
func (table Table) Check(t testing.TB, log string) {
	t.Helper()
	told := map[string]bool{}
	for line := range strings.Lines(log) {
		var fields map[string]any
		if json.Unmarshal([]byte(line), &fields) != nil {
			continue
		}
		event, isEvent := fields["event"].(string)
		own, known := table.Events[event]
		if isEvent && !known {
			t.Errorf("the event %s is not in docs/operating.md", event)
		}
		if !isEvent && fields["msg"] != "request" {
			continue
		}
		for f := range fields {
			if about := event + " " + f; !told[about] && !slices.Contains(own, f) &&
				!slices.Contains(table.Fields, f) && !slices.Contains(handler, f) {
				told[about] = true
				t.Errorf("docs/operating.md does not say that %q may have the field %q: %s", fields["msg"], f, line)
			}
		}
	}
}
