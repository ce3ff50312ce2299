package authserver

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/attempt"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

func kindsOf(a attempt.Attempt) (out []string) {
	for _, s := range a.Steps {
		out = append(out, string(s.Kind))
	}
	return out
}

// TestAttemptOfADevice checks that the request of a device and the user's decision elsewhere are
// one attempt.
func TestAttemptOfADevice(t *testing.T) {
	r := watched(t)
	r.putClient(storage.Client{
		ID: "tv", Name: "A TV", GrantTypes: []string{oauth.GrantDeviceCode}, AuthMethod: "none",
		Source: storage.SourceDynamic, CreatedAt: r.now(),
	})
	tv, phone := r.person(), r.person()
	_, a := tv.ask()
	pg := phone.signInFor(devicePath(a.UserCode))
	before := r.attempts(attempt.Query{})
	if len(before) != 1 || !before[0].Pending || !strings.Contains(before[0].Text, "consent page for a device") {
		t.Fatalf("OB-01: got %d attempts, %+v", len(before), before)
	}
	phone.decideDevice(pg, "approve")
	if status, _ := tv.poll(a); status != http.StatusOK {
		t.Fatalf("got %d", status)
	}
	all := r.attempts(attempt.Query{})
	want := []string{"authorize", "consent", "signin", "consent", "consent", "token"}
	if len(all) != 1 || !all[0].OK || all[0].Person != "alice" || !slices.Equal(kindsOf(all[0]), want) {
		t.Errorf("OB-01: got %d attempts, %q: %+v", len(all), kindsOf(all[0]), all[0])
	}
}

// TestAttemptWithASecondFactor checks that the page for a second factor and its answer are steps of
// the attempt.
func TestAttemptWithASecondFactor(t *testing.T) {
	r := newRig(t, named, keepAttempts)
	secret := r.alice().addApp()
	p := r.person()
	pg := p.get("/authorize?" + authorizeQuery().Encode())
	pg = p.post("/login", url.Values{
		"step": {pg.step(t)}, "username": {"alice"}, "password": {"correct horse battery"},
	})
	if got := r.lastAttempt(); !got.Pending || !strings.Contains(got.Text, "second factor page") {
		t.Errorf("OB-01: got %+v", got.Verdict)
	}
	p.post("/login/second", url.Values{"step": {pg.step(t)}, "code": {"000000"}})
	if got := r.lastAttempt(); got.Fault != attempt.SignInRefused || got.ClientName != "An App" {
		t.Errorf("OB-01: got %s of %q: %s", got.Fault, got.ClientName, got.Text)
	}
	r.advance(time.Minute)
	pg = p.post("/login/second", url.Values{"step": {pg.step(t)}, "code": {r.code(secret)}})
	pg = p.get(p.there(pg))
	p.post("/consent", url.Values{"step": {consentStep(t, pg)}, "decision": {"approve"}})
	got := r.lastAttempt()
	want := []string{"authorize", "signin", "signin", "signin", "authorize", "consent"}
	if !slices.Equal(kindsOf(got), want) || got.Fault != "" {
		t.Errorf("OB-01: got %q, %s", kindsOf(got), got.Fault)
	}
}
