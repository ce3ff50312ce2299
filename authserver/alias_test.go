package authserver

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/delegation"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

const testAlias = testResource + "@work"

func withAlias(c *Config) { c.Resources[0].Aliases = []string{testAlias} }

// atWork returns a request at the alias.
func atWork(change ...string) url.Values {
	return authorizeQuery(append([]string{"resource", testAlias}, change...)...)
}

// grantedAt approves a page and returns the tokens.
func (p *person) grantedAt(shown page, resource string) map[string]any {
	p.t.Helper()
	code := responseOf(p.t, p.decided(shown, nil)).Get("code")
	status, out := p.token(codeForm(code, "resource", resource))
	if status != http.StatusOK {
		p.t.Fatalf("token: got %d %v", status, out)
	}
	return out
}

// AS-239: one client connects to an MCP server and to its alias as two users, in one browser.
func TestAliasForAnotherPerson(t *testing.T) {
	r := twoPeople(t)
	r.restart(withAlias)
	p := r.person()
	alices := p.signIn()

	chooser := p.get("/authorize?" + atWork().Encode())
	if got := accounts(chooser); len(got) != 1 || got["alice"] == "" ||
		!strings.Contains(chooser.body, "Notes (work)") {
		t.Fatalf("the first time at the alias: got %v, want the choice of an account: %.900s", got, chooser.body)
	}
	shown := p.signInAs(p.get(linkTo(t, chooser, "account=another")), "bob", bobsPassword)
	if !shown.asks("bob") || !strings.Contains(shown.body, "Notes (work)") {
		t.Fatalf("bob is not asked about the alias: %.900s", shown.body)
	}
	bobs := p.grantedAt(shown, testAlias)
	claims := func(tokens map[string]any) (sub, aud string) {
		c := r.verified(t, tokens["access_token"].(string))
		return c.Subject, c.Audience
	}
	t.Run("RFC 8707 2: two people, two audiences", func(t *testing.T) {
		alice, at := claims(alices)
		bob, work := claims(bobs)
		if alice == bob || at != testResource || work != testAlias {
			t.Errorf("got %s for %s and %s for %s", alice, at, bob, work)
		}
	})
	t.Run("AS-108 a refresh keeps to its URL", func(t *testing.T) {
		if status, out := p.token(refreshForm(bobs["refresh_token"], "resource", testResource)); status != 400 ||
			out["error"] != "invalid_target" {
			t.Errorf("bob at the resource: got %d %v", status, out)
		}
		_, out := p.token(refreshForm(bobs["refresh_token"], "resource", testAlias))
		if _, aud := claims(out); aud != testAlias {
			t.Errorf("bob at the alias: got %s", aud)
		}
	})
	t.Run("AS-108 a code keeps to its URL", func(t *testing.T) {
		code := responseOf(t, p.get("/authorize?"+atWork().Encode())).Get("code") // remembered: no page
		if status, out := p.token(codeForm(code)); status != 400 || out["error"] != "invalid_target" {
			t.Errorf("got %d %v", status, out)
		}
	})
	t.Run("AS-74 what alice has allowed at the resource, she has not at the alias", func(t *testing.T) {
		p := r.person()
		p.signIn()
		shown := p.chooses(p.get("/authorize?"+atWork().Encode()), "alice")
		if !shown.asks("alice") {
			t.Errorf("got %.600s", shown.body)
		}
		again := responseOf(t, p.get("/authorize?"+atWork("prompt", "none").Encode()))
		if again.Get("error") != "consent_required" {
			t.Errorf("silently: got %v", again)
		}
	})
	t.Run("who signs in for the alias is asked once", func(t *testing.T) {
		p := r.person()
		if shown := p.login(atWork()); !shown.asks("alice") {
			t.Errorf("got %.600s", shown.body)
		}
	})
	t.Run("PE-09 each is listed, and cut, by itself", func(t *testing.T) {
		if p := p.get("/account"); !strings.Contains(p.body, "Notes (work)") {
			t.Errorf("the account page of bob: %.2000s", p.body)
		}
		bob, _ := claims(bobs)
		grants, err := r.store.ListGrants(t.Context(), bob, "", "", 10)
		if err != nil || len(grants) == 0 {
			t.Fatal(grants, err)
		}
		for _, g := range grants {
			if g.Resource != testAlias {
				t.Errorf("got a grant for %s", g.Resource)
			}
			if err := r.store.WithdrawGrant(t.Context(), g.ID, storage.ByPerson, r.now()); err != nil {
				t.Fatal(err)
			}
		}
		for token, want := range map[string]bool{
			bobs["access_token"].(string): false, alices["access_token"].(string): true,
		} {
			if in, err := r.Introspect(t.Context(), token); err != nil || in.Active != want {
				t.Errorf("got %+v, %v, want active %v", in, err, want)
			}
		}
	})
}

// Removing an alias has the effect of removing a resource (AS-105).
func TestAliasRemoved(t *testing.T) {
	r := newRig(t, withAlias)
	p := r.person()
	tokens := p.grantedAt(p.login(atWork()), testAlias)
	machine := storage.Client{
		ID: "at-work", GrantTypes: []string{oauth.GrantClientCredentials}, AuthMethod: "client_secret_basic",
		SecretHash: r.hashOf(t), Resources: []string{testAlias}, Source: storage.SourceStatic,
	}
	if err := r.store.PutClient(t.Context(), machine); err != nil {
		t.Fatal(err)
	}
	_, out := p.token(url.Values{"grant_type": {"client_credentials"}}, "Authorization", basic("at-work", testSecret))
	r.restart(func(c *Config) { c.Resources[0].Aliases = nil })
	if pg := p.get("/authorize?" + atWork().Encode()); strings.Contains(pg.body, `value="approve"`) {
		t.Errorf("AS-105 a request at the alias: got %.600s", pg.body)
	}
	if status, out := p.token(refreshForm(tokens["refresh_token"])); status != 400 || out["error"] != "invalid_grant" {
		t.Errorf("a refresh: got %d %v", status, out)
	}
	if in, err := r.Introspect(t.Context(), out["access_token"].(string)); err != nil || in.Active {
		t.Errorf("AS-227 the token of a machine: got %+v, %v", in, err)
	}
}

// A client of the operator can name an alias itself; as the MCP server of a resource it also serves
// the aliases.
func TestAliasesOfClients(t *testing.T) {
	r := newRig(t, withAlias)
	p := r.person()
	tokens := p.grantedAt(p.login(atWork()), testAlias)
	rs := []string{"Authorization", basic("machine", testSecret)}
	t.Run("AS-176 a machine that is registered for the resource gets no token for the alias", func(t *testing.T) {
		status, out := p.token(url.Values{"grant_type": {"client_credentials"}, "resource": {testAlias}}, rs...)
		if status != 400 || out["error"] != "invalid_target" {
			t.Errorf("got %d %v", status, out)
		}
	})
	t.Run("AS-227 the MCP server may ask about tokens for the alias", func(t *testing.T) {
		var out oauth.Introspection
		pg := p.post("/introspect", url.Values{"token": {tokens["access_token"].(string)}}, rs...)
		if err := json.Unmarshal([]byte(pg.body), &out); err != nil || !out.Active || out.Audience != testAlias {
			t.Errorf("got %s, %v", pg.body, err)
		}
	})
}

// permits records the resources that it is asked about.
type permits struct {
	*providers
	resources []string
}

func (f *permits) Permit(ctx context.Context, id, resource string, scopes oauth.Scopes) (oauth.Scopes, string, error) {
	f.resources = append(f.resources, resource)
	return f.providers.Permit(ctx, id, resource, scopes)
}

// SP-06: the operator's settings of a resource apply at its aliases: the scopes of users, and the
// provider tokens.
func TestRulesAtAnAlias(t *testing.T) {
	r, f := delegated(t, withAlias)
	rules := &permits{providers: f}
	r.restart(func(c *Config) { c.Delegation = rules })
	p := r.person()
	back := p.back(callback(t, "google", p.leave(atWork("provider", "google"))))
	_, out := p.token(codeForm(responseOf(t, back).Get("code"), "resource", testAlias))
	if out["access_token"] == nil {
		t.Fatalf("got %v", out)
	}
	f.token = delegation.Token{Token: upstreamToken, Type: "Bearer", ExpiresAt: r.now().Add(time.Hour)}
	_, got := p.token(exchangeForm(out["access_token"]), "Authorization", basic("machine", testSecret))
	if got["access_token"] != upstreamToken {
		t.Errorf("AS-229 the MCP server exchanges a token for the alias: got %v", got)
	}
	if asked := f.asked[len(f.asked)-1]; asked.Resource != testResource {
		t.Errorf("AS-217 a token of the provider for %s", asked.Resource)
	}
	for _, resource := range rules.resources {
		if resource != testResource {
			t.Errorf("the rules of %s were asked for", resource)
		}
	}
	if len(rules.resources) == 0 {
		t.Error("no rules were asked for")
	}
}
