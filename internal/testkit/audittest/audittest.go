// Package audittest holds what programs log against events.yaml, of which docs/reference/audit-events.md
// is made.
package audittest

import (
	_ "embed"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.yaml.in/yaml/v3"
)

// Table is what the documentation says of the log.
type Table struct {
	Events map[string][]string // the fields that an event has beside the common ones
	Fields []string            // that any event, or the line of any request, may have
}

// file is events.yaml.
type file struct {
	Fields []struct {
		Names []string `yaml:"names"`
		Is    string   `yaml:"is"`
	} `yaml:"fields"`
	Areas []struct {
		Area   string `yaml:"area"`
		Events []struct {
			Event  string   `yaml:"event"`
			When   string   `yaml:"when"`
			Fields []string `yaml:"fields"`
		} `yaml:"events"`
	} `yaml:"areas"`
}

//go:embed events.yaml
var eventsFile string

func read(t testing.TB) file {
	t.Helper()
	f, err := parsed()
	if err != nil {
		t.Fatal("events.yaml: ", err)
	}
	return f
}

var parsed = sync.OnceValues(func() (f file, err error) {
	decoder := yaml.NewDecoder(strings.NewReader(eventsFile))
	decoder.KnownFields(true)
	err = decoder.Decode(&f)
	return f, err
})

// Read reads events.yaml.
func Read(t testing.TB) Table {
	t.Helper()
	out := Table{Events: map[string][]string{}}
	f := read(t)
	for _, field := range f.Fields {
		out.Fields = append(out.Fields, field.Names...)
	}
	for _, area := range f.Areas {
		for _, e := range area.Events {
			if _, twice := out.Events[e.Event]; twice {
				t.Errorf("events.yaml has %s twice", e.Event)
			}
			out.Events[e.Event] = e.Fields
		}
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
			t.Errorf("the event %s is not in internal/testkit/audittest/events.yaml", event)
		}
		if !isEvent && fields["msg"] != "request" {
			continue
		}
		for f := range fields {
			if about := event + " " + f; !told[about] && !slices.Contains(own, f) &&
				!slices.Contains(table.Fields, f) && !slices.Contains(handler, f) {
				told[about] = true
				t.Errorf("internal/testkit/audittest/events.yaml does not say that %q may have the field %q: %s",
					fields["msg"], f, line)
			}
		}
	}
}
