package console

import (
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/pages"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// TestInput checks that form fields become the input of an operation: scopes in rows, times as
// browsers write them, and an emptied list (OB-10).
func TestInput(t *testing.T) {
	in, err := input(admin.ResourceSet, url.Values{
		"uri":     {"https://mcp.example.com/mcp"},
		"aliases": {""},

		"scopes.0.name": {"mcp"}, "scopes.0.description": {"use it"}, "scopes.0.every_call": {"true"},
		"scopes.2.name": {"notes:read"}, "scopes.2.default": {"true"}, "scopes.2.access": {"read"},
		"scopes.2.implies": {"a b"}, "scopes.2.max_age": {"5m"}, "scopes.3.name": {" "},
	})
	got, _ := in.Interface().(*admin.ResourceChange)
	want := []storage.ScopeText{
		{Name: "mcp", Description: "use it", EveryCall: true},
		{
			Name: "notes:read", Default: true, Access: storage.AccessRead, Implies: []string{"a", "b"},
			MaxAge: storage.Age(5 * time.Minute),
		},
	}
	if err != nil || !reflect.DeepEqual(got.Scopes, want) || got.Aliases == nil || len(got.Aliases) > 0 {
		t.Errorf("OB-10: got %+v, %v", got, err)
	}
	given := url.Values{}
	giveRows(reflect.ValueOf(want), "scopes", given)
	in, err = input(admin.ResourceSet, given)
	got, _ = in.Interface().(*admin.ResourceChange)
	if err != nil || !reflect.DeepEqual(got.Scopes, want) || got.Aliases != nil {
		t.Errorf("OB-10: the rows of a form that nobody changed are read as %+v, %v", got, err)
	}
	for want, bad := range map[string]url.Values{
		"row 1 has no name": {"scopes.0.description": {"read"}},
		"not a duration":    {"scopes.0.name": {"a"}, "scopes.0.max_age": {"soon"}},
	} {
		if _, err := input(admin.ResourceSet, bad); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("OB-10: %v: got %v, want %q", bad, err, want)
		}
	}
	if n := rowsIn("scopes", url.Values{"scopes.1000000000.name": {"a"}, "scopes.-1.name": {"b"}}); n != 0 {
		t.Errorf("OB-10: a form has %d rows", n)
	}
	in, err = input(admin.AttemptList, url.Values{"since": {"2026-11-23T15:02"}, "failed": {"true"}})
	wanted, _ := in.Interface().(*admin.AttemptsWanted)
	if err != nil || !wanted.Failed || !wanted.Since.Equal(time.Date(2026, 11, 23, 15, 2, 0, 0, time.UTC)) {
		t.Errorf("OB-10: got %+v, %v", wanted, err)
	}
	for _, bad := range []url.Values{{"since": {"yesterday"}}, {"failed": {"perhaps"}}, {"limit": {"many"}}} {
		if _, err := input(admin.AttemptList, bad); err == nil {
			t.Errorf("OB-10: %v is an input", bad)
		}
	}
}

// TestAgo checks that times and numbers are formatted for readers (OB-10).
func TestAgo(t *testing.T) {
	now := time.Date(2026, 11, 23, 15, 2, 0, 0, time.UTC)
	for want, d := range map[string]time.Duration{
		"just now": -time.Second, "1 minute ago": -90 * time.Second, "5 hours ago": -5 * time.Hour,
		"3 days ago": -80 * time.Hour, "14 Oct 2026": -40 * 24 * time.Hour, "in 2 days": 50 * time.Hour,
		"in a moment": 3 * time.Second,
	} {
		if got := ago(now.Add(d), now); got != want {
			t.Errorf("OB-10: %s: got %q, want %q", d, got, want)
		}
	}
	if got := exactly(now.Add(-time.Hour), now); got != "23 Nov 2026, 14:02 UTC (1 hour ago)" {
		t.Errorf("OB-10: got %q", got)
	}
	for n, want := range map[int]string{
		0: "0 grants", 1: "1 grant", 1204: "1,204 grants", 1000007: "1,000,007 grants",
	} {
		if got := counted(n, "grant", "grants"); got != want {
			t.Errorf("OB-10: got %q, want %q", got, want)
		}
	}
}

// TestOnceOfAnother checks that the output of a nested operation is shown like its own, secrets
// first (OB-10).
func TestOnceOfAnother(t *testing.T) {
	type accepted struct {
		ID     string        `json:"id"`
		By     admin.GrantID `json:"by"`
		Output any           `json:"output"`
	}
	link := &admin.Link{URL: "https://auth.example.com/link/x"}
	out := reflect.ValueOf(accepted{"prp_1", admin.GrantID{ID: "alice"}, link})
	v := &view{Console: New(Config{Now: time.Now})}
	parts := v.once(noun{}, members(out))
	secret, ok := parts[0].(pages.ConsoleSecret)
	if !ok || secret.Secrets[0].Value.Text != "https://auth.example.com/link/x" {
		t.Errorf("OB-10: got %+v", parts)
	}
	m, _ := memberOf(members(out), "by")
	if c := v.plainCell(m, nil); c.Text != "alice" {
		t.Errorf("OB-10: got %+v", c)
	}
}

// TestMarked checks that operations that take something away are marked, and that no form shows a
// secret (OB-10).
func TestMarked(t *testing.T) {
	for _, verb := range admin.All() {
		if s := verb.Spec(); s.Method == "DELETE" && !s.Takes || s.Takes && !s.Changes() {
			t.Errorf("OB-10: %s takes something away: %v", s.Name, s.Takes)
		}
		for _, f := range fields(verb, url.Values{"password": {"x"}, "token": {"x"}, "assertion": {"x"}}, nil) {
			if f.Value == "x" {
				t.Errorf("OB-10: the form of %s shows %s", verb.Spec().Name, f.Name)
			}
		}
	}
}

// TestEventChoices checks that the kind of an audit entry is a choice, and that an unknown kind
// stays selected (OB-10).
func TestEventChoices(t *testing.T) {
	v := &view{Console: New(Config{Visitors: atRoot{}})}
	for _, given := range []string{"", "tool.called", "later.event"} {
		found := false
		for _, f := range v.search(admin.AuditList, url.Values{"event": {given}}).Fields {
			if f.Name != "event" {
				continue
			}
			found = true
			selected := slices.ContainsFunc(f.Options, func(o pages.ConsoleOption) bool { return o.Value == given })
			if f.Type != "select" || !selected || len(f.Options) < 60 || f.Options[0].Text != "Any event" {
				t.Errorf("OB-10: %q: got %+v", given, f)
			}
		}
		if !found {
			t.Error("OB-10: the audit log cannot be filtered by event")
		}
	}
}
