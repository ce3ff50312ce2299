package authserver

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// TestHelperKeys checks that the token of a sub-agent is bound to its key if the client names the
// key.
func TestHelperKeys(t *testing.T) {
	p := newRig(t).person()
	key, own, thief := newSigner(t), newSigner(t), newSigner(t)
	_, out := p.token(codeForm(p.approve(authorizeQuery()).Get("code")), "DPoP", p.proof(key))
	bound := p.wantBound(http.StatusOK, out, key)
	free, _ := p.signIn()["access_token"].(string)
	t.Run("AS-243 RFC 9449 6: dpop_jkt binds the token to the helper's key; the client proves its own", func(t *testing.T) {
		form := helperForm(bound, "actor", "reader", "dpop_jkt", own.Thumbprint())
		status, out := p.token(form)
		wantError(t, status, out, 400, oauth.InvalidDPoPProof)
		for _, wrong := range []string{p.proof(own), p.proof(thief)} {
			status, out = p.token(form, "DPoP", wrong)
			wantError(t, status, out, 400, oauth.InvalidDPoPProof)
		}
		status, out = p.token(form, "DPoP", p.proof(key))
		made := p.wantBound(status, out, own)
		t.Run("which the client cannot use, and the helper can hand on", func(t *testing.T) {
			status, out := p.token(helperForm(made), "DPoP", p.proof(key))
			wantError(t, status, out, 400, oauth.InvalidDPoPProof)
			status, out = p.token(helperForm(made), "DPoP", p.proof(own))
			p.wantBound(status, out, own)
			status, out = p.token(helperForm(made, "dpop_jkt", thief.Thumbprint()), "DPoP", p.proof(own))
			p.wantBound(status, out, thief)
		})
		t.Run("which the client cuts without the helper's key", func(t *testing.T) {
			if pg := p.post("/revoke", url.Values{"token": {made}, "client_id": {"app"}}); pg.status != http.StatusOK {
				t.Fatalf("got %d", pg.status)
			}
			status, out := p.token(helperForm(made), "DPoP", p.proof(own))
			wantError(t, status, out, 400, oauth.InvalidRequest)
		})
	})
	t.Run("AS-243 without it, the token of a helper is bound to the key of the client", func(t *testing.T) {
		status, out := p.token(helperForm(bound), "DPoP", p.proof(key))
		p.wantBound(status, out, key)
	})
	t.Run("AS-243 a bearer token can become a bound one, with and without a proof", func(t *testing.T) {
		status, out := p.token(helperForm(free, "dpop_jkt", own.Thumbprint()))
		p.wantBound(status, out, own)
		status, out = p.token(helperForm(free, "dpop_jkt", own.Thumbprint()), "DPoP", p.proof(key))
		p.wantBound(status, out, own)
	})
	for name, jkt := range map[string]string{
		"short": "abc", "with padding": own.Thumbprint() + "=", "of other letters": strings.Repeat("+", 43),
	} {
		t.Run("AS-243 a dpop_jkt that is no thumbprint: "+name, func(t *testing.T) {
			status, out := p.token(helperForm(free, "dpop_jkt", jkt))
			wantError(t, status, out, 400, oauth.InvalidRequest)
		})
	}
	t.Run("AS-243 two of them", func(t *testing.T) {
		form := helperForm(free)
		form["dpop_jkt"] = []string{own.Thumbprint(), thief.Thumbprint()}
		status, out := p.token(form)
		wantError(t, status, out, 400, oauth.InvalidRequest)
	})
	t.Run("AS-213 a client of which proofs are demanded gets none without, whatever key it names", func(t *testing.T) {
		p.restart(func(c *Config) { c.Resources[0].DPoP = storage.DPoPRequired })
		status, out := p.token(helperForm(free, "dpop_jkt", own.Thumbprint()))
		wantError(t, status, out, 400, oauth.InvalidDPoPProof)
	})
	t.Run("AS-196 an assertion is not bound to a key that was only named", func(t *testing.T) {
		p := withAudience(t)
		out := p.identified(signInQuery())
		status, got := p.token(idjagForm(out["id_token"], "dpop_jkt", own.Thumbprint()), asDesk...)
		wantError(t, status, got, 400, oauth.InvalidRequest)
	})
}

// TestBoundRefreshTokenAsSubject checks that a bound refresh token is useless to a client without
// the key, even as the subject of an exchange (AS-241). Clients that get assertions have
// credentials, and their refresh tokens are not bound, so this client was public for a moment.
func TestBoundRefreshTokenAsSubject(t *testing.T) {
	p := withAudience(t)
	confidential, err := p.store.Client(t.Context(), "desk")
	if err != nil {
		t.Fatal(err)
	}
	become := func(c storage.Client) {
		t.Helper()
		if err := p.store.ReplaceClient(t.Context(), c, p.now()); err != nil {
			t.Fatal(err)
		}
		p.restart()
	}
	public := confidential
	public.AuthMethod, public.SecretHash = "none", nil
	code := p.approve(signInQuery("scope", "openid offline_access")).Get("code")
	become(public)
	key, thief := newSigner(t), newSigner(t)
	status, out := p.token(codeForm(code, "client_id", "desk", "resource", ""), "DPoP", p.proof(key))
	p.wantBound(status, out, key)
	become(confidential)

	form := idjagForm(out["refresh_token"], "subject_token_type", oauth.TokenTypeRefresh)
	status, got := p.token(form, asDesk...)
	wantError(t, status, got, 400, oauth.InvalidDPoPProof)
	status, got = p.token(form, append(asDesk, "DPoP", p.proof(thief))...)
	wantError(t, status, got, 400, oauth.InvalidGrant)
	status, got = p.token(form, append(asDesk, "DPoP", p.proof(key))...)
	if status != http.StatusOK || got["issued_token_type"] != oauth.TokenTypeIDJAG {
		t.Errorf("got %d %v", status, got)
	}
}

// TestDevicesOfResourcesThatDemandProofs checks that a device that does not name its MCP server
// keeps its code (AS-213).
func TestDevicesOfResourcesThatDemandProofs(t *testing.T) {
	_, tv := withDevice(t)
	_, a := tv.ask()
	tv.decideDevice(tv.signInFor(devicePath(a.UserCode)), "approve")
	tv.restart(func(c *Config) {
		c.Resources[0].DPoP = storage.DPoPRequired
		c.Resources = append(c.Resources, storage.Resource{URI: otherResource, Name: "Other"})
	})
	status, out := tv.poll(a)
	wantError(t, status, out, 400, oauth.InvalidDPoPProof)
	tv.advance(6 * time.Second)
	key := newSigner(t)
	status, out = tv.token(map[string][]string{
		"grant_type": {oauth.GrantDeviceCode}, "client_id": {"tv"}, "device_code": {a.DeviceCode},
	}, "DPoP", tv.proof(key))
	tv.wantBound(status, out, key)
}
