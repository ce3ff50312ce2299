// Package audittest compares the logs of programs with events.yaml, the source of
// docs/reference/audit-events.md.
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

// Table holds the documented events and fields of the log.
type Table struct {
	Events map[string][]string // additional fields of each event
	Fields []string            // fields that any event or request line may have
}

// file is the content of events.yaml.
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

// handler lists the fields that slog itself adds.
var handler = []string{"time", "level", "msg", "event"}

// Check fails the test for each event in a JSON log that is not in the table, and for each
// undocumented field of an event.
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
