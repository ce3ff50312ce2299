package authserver

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/attempt"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// TestVerdictFollowsTheCause checks that a verdict names the side that can change something, based
// on the known cause.
func TestVerdictFollowsTheCause(t *testing.T) {
	signIn := func(pg page) url.Values {
		return url.Values{"step": {pg.step(t)}, "username": {"alice"}, "password": {"correct horse battery"}}
	}
	ask := func(p *person) page { return p.get("/authorize?" + authorizeQuery().Encode()) }
	fails := func(err error) func(*rig, *person, *providers) {
		return func(_ *rig, p *person, f *providers) {
			f.set(func(f *providers) { f.returnErr = err })
			p.back(callback(t, "google", p.leave(authorizeQuery("provider", "google"))))
		}
	}
	for _, tt := range []struct {
		name  string
		do    func(*rig, *person, *providers)
		fault attempt.Fault
		whose attempt.Whose
		text  string
	}{
		{"a sign-in form without its cookie", func(r *rig, p *person, _ *providers) {
			r.person().post("/login", signIn(ask(p)))
		}, attempt.FormLost, attempt.OfPerson, "no cookie"},
		{"a consent form without its cookie", func(r *rig, p *person, _ *providers) {
			pg := p.login(authorizeQuery())
			r.person().post("/consent", url.Values{"step": {consentStep(t, pg)}, "decision": {"allow"}})
		}, attempt.FormLost, attempt.OfPerson, "no cookie"},
		{"a form with the Origin of a proxy", func(_ *rig, p *person, _ *providers) {
			p.post("/login", signIn(ask(p)), "Origin", "https://auth.example.net", "Sec-Fetch-Site", "cross-site")
		}, attempt.FormRefused, attempt.OfOperator, "another site"},
		{"a foreign host", func(r *rig, p *person, _ *providers) {
			req, _ := http.NewRequest(http.MethodGet, r.http.URL+"/authorize?"+authorizeQuery().Encode(), nil)
			req.Host = "abc.tunnel.example"
			p.do(req)
		}, attempt.HostUnknown, attempt.OfOperator, "abc.tunnel.example"},
		{"a provider that refuses this server",
			fails(oauth.NewError(oauth.ServerError, "NAME does not accept this server.").
				Because(attempt.CauseProvider.Because(errors.New("invalid_scope: offline_access")))),
			attempt.ProviderRefused, attempt.OfOperator, "offline_access"},
		{"a provider that is away",
			fails(oauth.NewError(oauth.TemporarilyUnavailable, "NAME could not be reached.").
				Because(attempt.CauseProvider.Because(errors.New("connection refused")))),
			attempt.ProviderRefused, attempt.OfOperator, "connection refused"},
		{"a rule of the provider's entry",
			fails(oauth.NewError(oauth.AccessDenied, "Your account may not use this server.").
				Because(attempt.CauseRule.Because(errors.New("the rule allow.groups does not admit dave")))),
			attempt.PersonNotPermitted, attempt.OfOperator, "allow.groups does not admit dave"},
		{"a document that breaks a rule", func(_ *rig, p *person, _ *providers) {
			p.get("/authorize?" + authorizeQuery("client_id", "https://bad.example/c.json").Encode())
		}, attempt.DocumentUnusable, attempt.OfClient, "not served as JSON"},
		{"a document whose host is away", func(_ *rig, p *person, _ *providers) {
			p.login(authorizeQuery())
			p.get("/authorize?" + authorizeQuery("client_id", "https://away.example/c.json").Encode())
		}, attempt.DocumentUnusable, attempt.OfClient, "no such host"},
		{"the end of the session at the provider", func(r *rig, p *person, f *providers) {
			tokens := p.signInAt("google")
			f.end(t, "google")
			p.token(refreshForm(tokens["refresh_token"]))
		}, attempt.GrantEnded, attempt.OfPerson, "end of the session at the provider"},
	} {
		t.Run("RU-12 "+tt.name, func(t *testing.T) {
			r, f := delegated(t, keepAttempts, func(c *Config) {
				c.Registry = &registry{Clients: badDocument{c.Store}, Documents: outOfReach{"no such host"}}
			})
			tt.do(r, r.person(), f)
			failed := r.attempts(attempt.Query{})
			failed = slices.DeleteFunc(failed, func(a attempt.Attempt) bool { return a.Fault == "" })
			if len(failed) != 1 {
				t.Fatalf("got %d failed attempts", len(failed))
			}
			got := failed[0]
			if got.Fault != tt.fault || got.Whose != tt.whose || !strings.Contains(got.Text, tt.text) {
				t.Errorf("got %s of %s: %s", got.Fault, got.Whose, got.Text)
			}
		})
	}
}

// badDocument finds one client whose metadata document breaks a rule.
type badDocument struct{ Clients }

func (b badDocument) Client(ctx context.Context, id string) (storage.Client, error) {
	if id == "https://bad.example/c.json" {
		return storage.Client{}, oauth.NewError(oauth.InvalidClient,
			"The client metadata document cannot be used: it is not served as JSON.").
			Because(attempt.CauseDocument.Because(storage.ErrNotFound))
	}
	return b.Clients.Client(ctx, id)
}

// TestWrongPasswordIsFound checks that a wrong password is an attempt of the user whose name was
// typed.
func TestWrongPasswordIsFound(t *testing.T) {
	r := watched(t)
	p := r.person()
	pg := p.get("/authorize?" + authorizeQuery().Encode())
	p.post("/login", url.Values{"step": {pg.step(t)}, "username": {"alice"}, "password": {"wrong"}})
	u, err := r.store.UserByName(t.Context(), "alice")
	if err != nil {
		t.Fatal(err)
	}
	got := r.attempts(attempt.Query{Person: u.ID})
	if len(got) != 1 || got[0].Fault != attempt.SignInRefused || got[0].Person != "alice" {
		t.Errorf("RU-12: got %+v", got)
	}
}
