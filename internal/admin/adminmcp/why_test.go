package adminmcp_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/admin/adminmcp"
	"github.com/mcp-authd/mcp-authd/internal/attempt"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// keep stores a step of an attempt, as a server does.
func (r *rig) keep(s attempt.Step) {
	r.Helper()
	body, err := json.Marshal(s)
	if err != nil {
		r.Fatal(err)
	}
	keys := []string{"ref:" + s.Reference, "client:" + s.Keys.Client, "address:" + s.Keys.Address}
	if s.Keys.Person != "" {
		keys = append(keys, "person:"+s.Keys.Person)
	}
	err = r.store.PutSteps(r.Context(), []storage.AttemptStep{
		{At: s.At, Keys: keys, Body: body, KeptUntil: s.At.Add(time.Hour)},
	})
	if err != nil {
		r.Fatal(err)
	}
}

// why calls the tool, and returns its structured content.
func (v *visit) why(args map[string]any) (e adminmcp.Explanation) {
	v.Helper()
	result := v.call("why", args)
	if result == nil || result.IsError {
		v.Fatalf("why %v: %d %+v", args, v.status, result)
	}
	framed(v.T, text(result))
	data, err := json.Marshal(result.StructuredContent)
	if err == nil {
		err = json.Unmarshal(data, &e)
	}
	if err != nil {
		v.Fatal(err)
	}
	return e
}

// TestWhy checks that "Why could Bob not sign in at 15:02?" has an answer for users who may read
// attempts (OB-11).
func TestWhy(t *testing.T) {
	r := newRig(t)
	at := time.Now().Add(-3 * time.Hour).Truncate(time.Second)
	sue := r.person("sue", admin.Support, "admin:read", time.Hour)
	bob := r.person("bob", "", "admin:read", time.Hour)
	u, err := r.service.Users.Find(t.Context(), "bob")
	if err != nil {
		t.Fatal(err)
	}
	denied := attempt.Answer{Status: 400, Error: string(oauth.AccessDenied)}
	r.keep(attempt.Step{
		Reference: "AAAAAAAA", At: at, Kind: attempt.Consent, Answer: denied,
		Keys: attempt.Keys{
			Client: "notes", ClientName: planted, Person: u.ID, PersonName: "bob", Thread: "t1", Address: "192.0.2.7",
		},
	})
	r.keep(attempt.Step{
		Reference: "BBBBBBBB", At: at.Add(2 * time.Minute), Kind: attempt.SignIn,
		Answer: attempt.Answer{Status: 401, Error: string(oauth.AccessDenied)},
		Keys:   attempt.Keys{Client: "other", Thread: "t2", Address: "192.0.2.8"},
	})
	references := func(e adminmcp.Explanation) (out []string) {
		for _, a := range e.Attempts {
			out = append(out, a.Reference)
		}
		return out
	}
	for _, c := range []struct {
		what, account, answer string
		args                  map[string]any
		want                  []string
	}{
		{"a person and a time", "active", "Something went wrong", map[string]any{
			"person": "bob", "at": at.Add(time.Minute).Format(time.RFC3339),
		}, []string{"AAAAAAAA"}},
		{"the last day", "active", "Something went wrong", map[string]any{"person": "bob"}, []string{"AAAAAAAA"}},
		{"another time", "active", "Nothing was tried", map[string]any{
			"person": "bob", "at": at.Add(-2 * time.Hour).Format(time.RFC3339),
		}, nil},
		{"a client", "", "Something went wrong", map[string]any{"client": "other"}, []string{"BBBBBBBB"}},
		{"an address", "", "Something went wrong", map[string]any{"address": "192.0.2.7"}, []string{"AAAAAAAA"}},
		{"a reference", "", "Something went wrong", map[string]any{"reference": "bbbb-bbbb"}, []string{"BBBBBBBB"}},
		{"nobody knows yet who it was", "active", "Something went wrong", map[string]any{"person": "sue"},
			[]string{"BBBBBBBB"}},
		{"an unknown person", "unknown", "There is no account", map[string]any{"person": "bobby"},
			[]string{"BBBBBBBB"}},
		{"a window", "active", "Nothing was tried", map[string]any{
			"person": "bob", "at": at.Add(5 * time.Minute).Format(time.RFC3339), "within_minutes": 2,
		}, nil},
	} {
		e := sue.why(c.args)
		if e.Account != c.account || !strings.HasPrefix(e.Answer, c.answer) || !slices.Equal(references(e), c.want) {
			t.Errorf("OB-11: %s: got %q, %q, %v", c.what, e.Account, e.Answer, references(e))
		}
	}
	e := sue.why(map[string]any{"person": "bob"}).Attempts[0]
	if e.Outcome != "failed" || e.Fault != string(attempt.PersonRefused) || e.Verdict == "" || e.Next == "" ||
		e.Whose == "" || !e.Known || strings.Contains(e.Verdict+e.Next, "Ignore") || e.Client == planted {
		t.Errorf("OB-11: got %+v", e)
	}
	if e := sue.why(map[string]any{"client": "other"}).Attempts[0]; e.Known || e.Person != "" {
		t.Errorf("OB-11: got %+v", e)
	}
	if err := r.service.Users.Disable(t.Context(), "bob"); err != nil {
		t.Fatal(err)
	}
	if e := sue.why(map[string]any{"person": "bob"}); e.Account != "disabled" ||
		!strings.Contains(e.Answer, "disabled") {
		t.Errorf("OB-11: a disabled account: %+v", e)
	}
	if bob.session != nil {
		t.Error("OB-11: a person without a role asks")
	}
	for _, args := range []map[string]any{
		{"within_minutes": 1441}, {"at": "15:02"}, {"reference": "x"}, {"address": "x"}, {"other": true},
	} {
		if result := sue.call("why", args); result != nil && !result.IsError {
			t.Errorf("OB-11: %v is taken", args)
		}
	}
}
