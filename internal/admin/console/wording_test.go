package console

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/admin"
)

// TestWordings checks that each operation has the console's own words: a label, a heading, and for
// a change what it will do and what it did (OB-10). Its noun is in the menu table.
func TestWordings(t *testing.T) {
	known := map[string]bool{}
	for _, verb := range admin.All() {
		s := verb.Spec()
		n := nounOf(s.Name)
		known[s.Name] = true
		w, ok := n.texts[s.Name]
		if !ok || w.act == "" || w.title == "" {
			t.Errorf("OB-10: %s has no words: %+v", s.Name, w)
		}
		if s.HasBody() && w.lead == "" {
			t.Errorf("OB-10: the form of %s does not say what happens", s.Name)
		}
		if s.Changes() && !s.Secret && w.done == "" {
			t.Errorf("OB-10: nothing confirms %s", s.Name)
		}
		for _, text := range []string{w.lead, w.done} {
			if text != "" && !strings.HasSuffix(text, ".") || strings.Contains(text, "mcp-authd ") {
				t.Errorf("OB-10: %s: %q must be a sentence that names no command", s.Name, text)
			}
		}
		if len(subjects(verb)) == 0 && strings.Contains(w.title+w.lead+w.done, "%s") {
			t.Errorf("OB-10: %s has no object, so its words cannot name one: %+v", s.Name, w)
		}
	}
	for _, n := range nouns {
		for name := range n.texts {
			if !known[name] {
				t.Errorf("OB-10: there are words for %s, and no such operation", name)
			}
		}
	}
}

// TestFormLabels checks that each field of a form has the console's own label, and that no choice
// is named any, which only a filter offers (OB-10).
func TestFormLabels(t *testing.T) {
	used := map[string]bool{}
	look := func(operation, field string) {
		i := slices.IndexFunc([]string{operation + " " + field, field}, func(key string) bool {
			_, ok := formLabels[key]
			return ok
		})
		if i < 0 {
			t.Errorf("OB-10: the field %s of %s has no label", field, operation)
			return
		}
		used[[]string{operation + " " + field, field}[i]] = true
		for _, c := range choicesOf(operation, field) {
			if c.text == "" || strings.HasPrefix(strings.ToLower(c.text), "any") {
				t.Errorf("OB-10: the field %s of %s offers %q", field, operation, c.text)
			}
		}
	}
	for _, verb := range admin.All() {
		s := verb.Spec()
		for _, m := range members(reflect.New(verb.Input()).Elem()) {
			if !s.HasBody() && listed(verb) && (m.name == "limit" || m.name == "after") {
				continue
			}
			switch {
			case !s.HasBody() && listed(verb) && !m.given:
				if _, ok := formLabels["filter "+m.name]; ok {
					used["filter "+m.name] = true
				} else {
					used[m.name] = true
				}
			default:
				look(s.Name, m.name)
			}
			if rowable(m.value.Type()) {
				for _, f := range members(reflect.New(m.value.Type().Elem()).Elem()) {
					look(s.Name, m.name+"."+f.name)
				}
			}
		}
	}
	for key := range formLabels {
		if !used[key] {
			t.Errorf("OB-10: no form has the field %s", key)
		}
	}
}
