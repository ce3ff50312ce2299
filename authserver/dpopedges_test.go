package authserver

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/testkit/fakeissuer"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// TestDPoPUnnamedResource checks that clients that do not name the MCP server are refused before
// anything is spent.
func TestDPoPUnnamedResource(t *testing.T) {
	for name, more := range map[string][]storage.Resource{
		"AS-213 AS-241 all MCP servers demand proofs":  nil,
		"AS-213 AS-241 some MCP servers demand proofs": {{URI: otherResource, Name: "Other"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, func(c *Config) { c.Resources = append(c.Resources, more...) })
			p, key := r.person(), newSigner(t)
			_, out := p.token(codeForm(p.approve(authorizeQuery()).Get("code")))
			code := codeForm(p.approve(authorizeQuery()).Get("code"))
			code.Del("resource")
			r.restart(func(c *Config) { c.Resources[0].DPoP = storage.DPoPRequired })
			form := refreshForm(out["refresh_token"])
			status, refused := p.token(form)
			wantError(t, status, refused, 400, oauth.InvalidDPoPProof)
			status, refused = p.token(code)
			wantError(t, status, refused, 400, oauth.InvalidDPoPProof)
			status, refused = p.token(code, "DPoP", p.proof(key))
			p.wantBound(status, refused, key)
			t.Run("AS-49 a code that is unknown, and that of another client", func(t *testing.T) {
				theirs := codeForm(p.approve(authorizeQuery()).Get("code"), "client_id", "static", "resource", "")
				unknown := codeForm("mcpac_"+strings.Repeat("x", 86), "client_id", "static", "resource", "")
				for _, form := range []url.Values{theirs, unknown} {
					status, out := p.token(form, "Authorization", basic("static", testSecret))
					if more == nil { // all require proofs
						wantError(t, status, out, 400, oauth.InvalidDPoPProof)
						continue
					}
					wantError(t, status, out, 400, oauth.InvalidGrant)
				}
			})
			r.advance(10 * time.Minute) // beyond the grace period: a spent one would be reuse
			status, out = p.token(form, "DPoP", p.proof(key))
			p.wantBound(status, out, key)
		})
	}
}

// TestAssertedHelpers checks that an assertion's claims about the user's authentication also count
// for sub-agents.
func TestAssertedHelpers(t *testing.T) {
	r := newBearerRig(t)
	reply, mine := r.granted(r.jag(r.claims().With(fakeissuer.Claims{
		"acr": "phr", "auth_time": r.now().Unix(), "scope": "mcp admin",
	})))
	if reply.Scope != "mcp admin" {
		t.Fatalf("got %q", reply.Scope)
	}
	for asked, want := range map[string]string{"": "mcp admin", "admin": "admin"} {
		t.Run("AS-231 AS-238 AS-243 the helper of an asserted grant has "+want, func(t *testing.T) {
			form := helperForm(reply.AccessToken, "client_id", "", "client_secret", testSecret, "scope", asked)
			form.Set("client_id", "agent")
			status, out := r.person().token(form)
			if status != 200 || out["scope"] != want {
				t.Fatalf("got %d %v", status, out)
			}
			if c := r.verified(t, out["access_token"].(string)); c.ACR != mine.ACR || c.ACR != "phr" {
				t.Errorf("got acr %q, want %q", c.ACR, mine.ACR)
			}
		})
	}
}

// TestDPoPOfWorkloads checks that the limit on proofs applies only to clients that the operator
// does not vouch for.
func TestDPoPOfWorkloads(t *testing.T) {
	t.Run("AS-197 AS-211 a workload of a trust entry may use as many proofs as it needs", func(t *testing.T) {
		r := newBearerRig(t)
		p, key := r.person(), newSigner(t)
		for range 310 {
			form := url.Values{"grant_type": {oauth.GrantJWTBearer}, "assertion": {r.ci.Sign("JWT", r.push())}}
			status, out := p.token(form, "DPoP", p.proof(key))
			p.wantBound(status, out, key)
		}
	})
}
