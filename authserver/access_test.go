package authserver

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/attempt"
	"github.com/mcp-authd/mcp-authd/internal/recent"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/testkit/fakeissuer"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// rule sets a rule for the test's MCP server, and lets the server see it.
func (r *rig) rule(rule storage.AccessRule) {
	r.t.Helper()
	rule.Resource, rule.SetAt = testResource, r.now()
	if err := r.store.PutAccessRule(r.t.Context(), rule); err != nil {
		r.t.Fatal(err)
	}
	r.advance(recent.TTL)
}

func (r *rig) aliceID() string {
	r.t.Helper()
	u, err := r.store.UserByName(r.t.Context(), "alice")
	if err != nil {
		r.t.Fatal(err)
	}
	return u.ID
}

func (r *rig) groups(names ...string) {
	r.t.Helper()
	for _, name := range names {
		if err := r.store.CreateGroup(r.t.Context(), storage.Group{Name: name, CreatedAt: r.now()}); err != nil {
			r.t.Fatal(err)
		}
	}
}

// wide requests read and write access.
func wide() url.Values { return authorizeQuery("scope", "mcp notes:write offline_access") }

func onlyRead(userID string) storage.AccessRule {
	return storage.AccessRule{UserID: userID, Scopes: oauth.Scopes{"mcp"}}
}

func TestAccessRules(t *testing.T) {
	t.Run("RU-19 a person who may only read is asked for that, and gets it", func(t *testing.T) {
		r := newRig(t)
		r.rule(onlyRead(r.aliceID()))
		p := r.person()
		pg := p.login(wide())
		if strings.Contains(pg.body, "add notes") {
			t.Error("the page offers scopes that the user may not have")
		}
		status, out := p.token(codeForm(p.approve(wide()).Get("code")))
		if status != http.StatusOK || out["scope"] != "mcp offline_access" && out["scope"] != "mcp" {
			t.Errorf("got %d %v, want mcp alone", status, out)
		}
	})
	t.Run("RU-19 a configured rule overrides one in the store", func(t *testing.T) {
		r := newRig(t, func(c *Config) {
			c.AccessRules = []storage.AccessRule{
				{Resource: testResource, Group: "staff", Scopes: oauth.Scopes{"mcp"}, Config: true},
				{Resource: testResource, UserID: "usr_other", Config: true}, // allows nothing
			}
		})
		r.groups("staff")
		r.rule(storage.AccessRule{Group: "staff", All: true})
		if err := r.store.AddMember(t.Context(), "staff", r.aliceID(), r.now()); err != nil {
			t.Fatal(err)
		}
		p := r.person()
		_, out := p.token(codeForm(p.approve(wide()).Get("code")))
		if out["scope"] != "mcp offline_access" && out["scope"] != "mcp" {
			t.Errorf("got %v, want mcp alone", out)
		}
	})
	t.Run("RU-19 a rule about one person says nothing about others", func(t *testing.T) {
		r := newRig(t)
		other, err := r.Users().Create(t.Context(), "bob", "correct horse battery", false)
		if err != nil {
			t.Fatal(err)
		}
		r.rule(onlyRead(other.ID))
		p := r.person()
		_, out := p.token(codeForm(p.approve(wide()).Get("code")))
		if !strings.Contains(out["scope"].(string), "notes:write") {
			t.Errorf("got %v, want notes:write, too", out)
		}
	})
	t.Run("RU-19 who is in none of the groups may not use the MCP server", func(t *testing.T) {
		r := newRig(t)
		r.groups("staff")
		r.rule(storage.AccessRule{Group: "staff", All: true})
		p := r.person()
		if pg := p.login(wide()); pg.status != http.StatusForbidden ||
			!strings.Contains(pg.body, "may not use what the application asks for") {
			t.Errorf("got %d %.300s, want a refusal", pg.status, pg.body)
		}
		if err := r.store.AddMember(t.Context(), "staff", r.aliceID(), r.now()); err != nil {
			t.Fatal(err)
		}
		if status, out := p.token(codeForm(p.approve(wide()).Get("code"))); status != http.StatusOK {
			t.Errorf("a member of the group: got %d %v", status, out)
		}
	})
	t.Run("RU-19 a form that was shown before the rule grants no more than the rule gives", func(t *testing.T) {
		r := newRig(t)
		p := r.person()
		pg := p.login(wide())
		r.rule(onlyRead(r.aliceID()))
		pg = p.post("/consent", url.Values{"step": {consentStep(t, pg)}, "decision": {"approve"}})
		if pg.status == http.StatusOK { // the changed scopes are shown first
			pg = p.post("/consent", url.Values{"step": {consentStep(t, pg)}, "decision": {"approve"}})
		}
		_, out := p.token(codeForm(responseOf(t, pg).Get("code")))
		if scope, _ := out["scope"].(string); scope == "" || strings.Contains(scope, "notes:write") {
			t.Errorf("got %v, want mcp alone", out)
		}
	})
	t.Run("RU-19 a rule counts at the next refresh, and no longer when it is removed", func(t *testing.T) {
		r := newRig(t)
		p := r.person()
		_, out := p.token(codeForm(p.approve(wide()).Get("code")))
		refresh := func(want string) {
			t.Helper()
			status, next := p.token(refreshForm(out["refresh_token"]))
			if scope, _ := next["scope"].(string); status != http.StatusOK || strings.Contains(scope, "notes:write") !=
				strings.Contains(want, "notes:write") {
				t.Fatalf("got %d %v, want %s", status, next, want)
			}
			out = next
		}
		rule := onlyRead(r.aliceID())
		r.rule(rule)
		refresh("mcp")
		rule.Resource = testResource
		if err := r.store.DeleteAccessRule(t.Context(), rule); err != nil {
			t.Fatal(err)
		}
		r.advance(recent.TTL)
		refresh("mcp notes:write")
		r.rule(storage.AccessRule{UserID: r.aliceID()})
		if status, next := p.token(refreshForm(out["refresh_token"])); next["error"] != "invalid_grant" {
			t.Errorf("a rule that leaves nothing: got %d %v, want invalid_grant", status, next)
		}
	})
	t.Run("RU-19 a token that is exchanged has no more than the rules give today", func(t *testing.T) {
		r := newRig(t)
		p := r.person()
		_, out := p.token(codeForm(p.approve(wide()).Get("code")))
		if status, next := p.token(helperForm(out["access_token"])); next["scope"] != "mcp notes:write" {
			t.Fatalf("without a rule: got %d %v", status, next)
		}
		r.rule(onlyRead(r.aliceID()))
		if status, next := p.token(helperForm(out["access_token"])); next["scope"] != "mcp" {
			t.Errorf("with a rule: got %d %v, want mcp alone", status, next)
		}
		r.rule(storage.AccessRule{UserID: r.aliceID()})
		if status, next := p.token(helperForm(out["access_token"])); status == http.StatusOK {
			t.Errorf("a rule that leaves nothing: got %v, want a refusal", next)
		}
	})
}

// TestDeviceAccess checks that a device gets the scopes of the approving user (RU-19).
func TestDeviceAccess(t *testing.T) {
	r, tv := withDevice(t)
	r.rule(onlyRead(r.aliceID()))
	phone := r.person()
	_, a := tv.ask("scope", "mcp notes:write")
	pg := phone.signInFor(devicePath(a.UserCode))
	if strings.Contains(pg.body, "add notes") {
		t.Error("the page offers scopes that the user may not have")
	}
	phone.decideDevice(pg, "approve")
	if status, out := tv.poll(a); status != http.StatusOK || strings.Contains(out["scope"].(string), "notes:write") {
		t.Errorf("got %d %v, want mcp alone", status, out)
	}
}

// TestAssertedAccess checks that an assertion for a user gets the scopes of that user (RU-19).
// Workloads are not users.
func TestAssertedAccess(t *testing.T) {
	r := newBearerRig(t)
	const both = "mcp notes:write"
	asserted := func() page { return r.jag(r.claims().With(fakeissuer.Claims{"scope": both}), "scope", both) }
	if out, _ := r.granted(asserted()); out.Scope != both {
		t.Fatalf("without a rule: got %q", out.Scope)
	}
	r.rule(storage.AccessRule{Scopes: oauth.Scopes{"mcp"}})
	if out, _ := r.granted(asserted()); out.Scope != "mcp" {
		t.Errorf("with a rule: got %q, want mcp alone", out.Scope)
	}
	r.rule(storage.AccessRule{})
	r.refused(asserted(), oauth.InvalidScope)
	r.granted(r.job(r.push()))
}

// TestRuleIsNamed checks that the attempt and the log name the rule that withholds scopes, for the
// operator (RU-12). The user does not learn of groups.
func TestRuleIsNamed(t *testing.T) {
	r := watched(t)
	r.groups("staff", "readers")
	if err := r.store.AddMember(t.Context(), "readers", r.aliceID(), r.now()); err != nil {
		t.Fatal(err)
	}
	r.rule(storage.AccessRule{Group: "staff", All: true})
	pg := r.person().login(wide())
	if pg.status != http.StatusForbidden || strings.Contains(pg.body, "staff") {
		t.Errorf("got %d %.300s, want a refusal without the group", pg.status, pg.body)
	}
	const foreign = "withheld mcp notes:write: the access rule for group staff, of which the person is not a member"
	named := func(a attempt.Attempt) bool {
		return a.Fault == attempt.PersonNotPermitted && strings.Contains(a.Text, foreign)
	}
	if got := r.attempts(attempt.Query{}); !slices.ContainsFunc(got, named) {
		t.Errorf("got %+v, want %q", got, foreign)
	}
	if !strings.Contains(r.log.String(), `"withheld_by":"the access rule for group staff`) {
		t.Error("the log does not name the rule")
	}
	r.rule(storage.AccessRule{Group: "readers", Scopes: oauth.Scopes{"mcp"}})
	r.person().login(wide())
	const fewer = "withheld notes:write: the access rule for group readers"
	for _, a := range r.attempts(attempt.Query{}) {
		for _, s := range a.Steps {
			if s.Answer.Reason == fewer && s.Answer.Error == "" {
				return
			}
		}
	}
	t.Errorf("no step says %q", fewer)
}

// TestProviderRuleIsNamed checks the same for rules of a provider (RU-12).
func TestProviderRuleIsNamed(t *testing.T) {
	r, f := delegated(t, keepAttempts)
	f.set(func(f *providers) { f.permitted = oauth.Scopes{"other"} })
	p := r.person()
	p.back(callback(t, "google", p.leave(authorizeQuery("provider", "google"))))
	const want = `withheld mcp: scope_rules[0] of the provider "google"`
	for _, a := range r.attempts(attempt.Query{}) {
		if a.Fault == attempt.PersonNotPermitted && strings.Contains(a.Text, want) {
			return
		}
	}
	t.Errorf("no attempt says %q: %+v", want, r.attempts(attempt.Query{}))
}
