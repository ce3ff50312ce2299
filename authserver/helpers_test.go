package authserver

import (
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// helperForm returns a request of the client app for a token with fewer scopes.
func helperForm(token any, change ...string) url.Values {
	v := url.Values{
		"grant_type": {oauth.GrantTokenExchange}, "client_id": {"app"}, "subject_token": {token.(string)},
		"subject_token_type": {typeAccessToken},
	}
	for i := 0; i+1 < len(change); i += 2 {
		if change[i+1] == "" {
			v.Del(change[i])
		} else {
			v.Add(change[i], change[i+1])
		}
	}
	return v
}

// helper exchanges a token for a sub-agent, and returns the new one.
func (p *person) helper(token any, change ...string) string {
	p.t.Helper()
	status, out := p.token(helperForm(token, change...))
	if status != http.StatusOK {
		p.t.Fatalf("the exchange: got %d %v", status, out)
	}
	return out["access_token"].(string)
}

// wantActive checks whether a token is active, with introspection and with status lists.
func (r *rig) wantActive(p *person, name, token string, want bool) {
	r.t.Helper()
	r.advance(statusFresh)
	if got := r.introspected(p, token)["active"]; got != want {
		r.t.Errorf("%s: got active %v, want %v", name, got, want)
	}
	if bit, _, _ := p.listed(r.t, r.verified(r.t, token).Status); bit == 1 == want {
		r.t.Errorf("%s: got the bit %d in its status list, want active %v", name, bit, want)
	}
}

func TestHelpers(t *testing.T) {
	r := newRig(t)
	p := r.person()
	status, out := p.token(codeForm(p.approve(authorizeQuery("scope", "mcp notes:write")).Get("code")))
	if status != http.StatusOK {
		t.Fatalf("got %d %v", status, out)
	}
	own := out["access_token"].(string)
	t.Run("AS-243 RFC 8693 2.2: a helper has fewer scopes, less time, and a name", func(t *testing.T) {
		status, got := p.token(helperForm(own, "scope", "mcp", "actor", "reader", "expires_in", "60"))
		if status != 200 || got["issued_token_type"] != typeAccessToken || got["token_type"] != "Bearer" ||
			got["expires_in"] != 60.0 || got["scope"] != "mcp" || got["refresh_token"] != nil {
			t.Fatalf("got %d %v", status, got)
		}
		mine, theirs := r.verified(t, own), r.verified(t, got["access_token"].(string))
		if theirs.Subject != mine.Subject || theirs.Audience != mine.Audience || theirs.ClientID != mine.ClientID ||
			theirs.GrantID != mine.GrantID || theirs.Scope != "mcp" || theirs.TokenID == mine.TokenID ||
			theirs.Expires >= mine.Expires || *theirs.Status == *mine.Status {
			t.Errorf("got %+v, of %+v", theirs, mine)
		}
		if want := (&oauth.Actor{Subject: "reader", NodeID: theirs.NodeID}); theirs.NodeID == "" ||
			!reflect.DeepEqual(theirs.Act, want) || mine.Act != nil || mine.NodeID != "" {
			t.Errorf("got act %+v, nid %q", theirs.Act, theirs.NodeID)
		}
		e := r.last(t, "helper.added")
		if e["node"] != theirs.NodeID || e["grant"] != mine.GrantID || e["actors"] != "reader" ||
			e["client_id"] != "app" {
			t.Errorf("AS-243 the audit: got %v", e)
		}
	})
	t.Run("AS-243 RFC 8693 4.1: a helper's helper, with the whole chain", func(t *testing.T) {
		first := p.helper(own, "actor", "planner")
		second := p.helper(first, "actor", "reader", "scope", "mcp")
		claims := r.verified(t, second)
		var chain []string
		for _, a := range claims.Act.Chain() {
			chain = append(chain, a.Subject)
		}
		if !slices.Equal(chain, []string{"reader", "planner"}) || claims.Act.Act.NodeID != r.verified(t, first).NodeID {
			t.Errorf("got %+v", claims.Act)
		}
		if got := r.introspected(p, second); got["nid"] != claims.NodeID ||
			got["act"].(map[string]any)["act"].(map[string]any)["sub"] != "planner" {
			t.Errorf("RFC 7662: got %v", got)
		}
	})
	t.Run("AS-243 no scope and no name: all of the subject's, and a name all the same", func(t *testing.T) {
		claims := r.verified(t, p.helper(own))
		if claims.Scope != "mcp notes:write" || claims.Act.Subject != "helper" {
			t.Errorf("got %q %+v", claims.Scope, claims.Act)
		}
		if mine := r.verified(t, own); claims.Expires > mine.Expires {
			t.Error("the token of the helper outlives that of the client")
		}
		r.advance(5 * time.Minute)
		long := r.verified(t, p.helper(own, "expires_in", "86400"))
		if mine := r.verified(t, own); long.Expires != mine.Expires {
			t.Errorf("got %d, want the end of the subject token, %d", long.Expires, mine.Expires)
		}
	})
	t.Run("AS-243 RFC 8707: the resource may be named, as resource or audience", func(t *testing.T) {
		p.helper(own, "resource", testResource)
		p.helper(own, "audience", testResource)
	})
	narrow := p.helper(own, "scope", "mcp")
	_, machine := p.token(url.Values{"grant_type": {oauth.GrantClientCredentials}}, "Authorization",
		basic("machine", testSecret))
	for _, tt := range []struct {
		name   string
		form   url.Values
		header []string
		code   oauth.Code
	}{
		{"AS-243 wider than the subject token", helperForm(narrow, "scope", "notes:write"), nil, oauth.InvalidScope},
		{"AS-243 partly wider", helperForm(narrow, "scope", "mcp notes:write"), nil, oauth.InvalidScope},
		{"AS-243 a scope that nothing has is not dropped", helperForm(own, "scope", "mcp nope"), nil, oauth.InvalidScope},
		{"AS-243 another client's token", helperForm(own, "client_id", ""),
			[]string{"Authorization", basic("static", testSecret)}, oauth.InvalidRequest},
		{"AS-243 a refresh token", helperForm(out["refresh_token"]), nil, oauth.InvalidRequest},
		{"AS-243 a token that is not ours", helperForm("x"), nil, oauth.InvalidRequest},
		{"AS-243 no token", helperForm(own, "subject_token", ""), nil, oauth.InvalidRequest},
		{"AS-243 no type", helperForm(own, "subject_token_type", ""), nil, oauth.InvalidRequest},
		{"AS-243 a refresh token back", helperForm(own, "requested_token_type",
			"urn:ietf:params:oauth:token-type:refresh_token"), nil, oauth.InvalidRequest},
		{"AS-243 an actor token", helperForm(own, "actor_token", "x"), nil, oauth.InvalidRequest},
		{"AS-243 a name with a line break", helperForm(own, "actor", "a\nb"), nil, oauth.InvalidRequest},
		{"AS-243 a name that is too long", helperForm(own, "actor", strings.Repeat("a", 65)), nil,
			oauth.InvalidRequest},
		{"AS-243 two names", helperForm(own, "actor", "a", "actor", "b"), nil, oauth.InvalidRequest},
		{"AS-243 no lifetime", helperForm(own, "expires_in", "0"), nil, oauth.InvalidRequest},
		{"AS-243 a lifetime that is no number", helperForm(own, "expires_in", "1h"), nil, oauth.InvalidRequest},
		{"AS-243 a lifetime before now", helperForm(own, "expires_in", "-60"), nil, oauth.InvalidRequest},
		{"AS-243 another resource", helperForm(own, "resource", "https://other.example.com"), nil, oauth.InvalidTarget},
		{"AS-243 another audience", helperForm(own, "audience", "https://other.example.com"), nil, oauth.InvalidTarget},
		{"AS-243 a token of a machine, which has no grant", helperForm(machine["access_token"], "client_id", ""),
			[]string{"Authorization", basic("machine", testSecret)}, oauth.InvalidRequest},
	} {
		t.Run(tt.name, func(t *testing.T) {
			status, got := p.token(tt.form, tt.header...)
			wantError(t, status, got, 400, tt.code)
		})
	}
	t.Run("AS-243 no client", func(t *testing.T) {
		status, got := p.token(helperForm(own, "client_id", ""))
		wantError(t, status, got, 401, oauth.InvalidClient)
	})
	t.Run("AS-243 an expired token", func(t *testing.T) {
		r.advance(16 * time.Minute)
		status, got := p.token(helperForm(own))
		wantError(t, status, got, 400, oauth.InvalidRequest)
	})
}

// AS-243: revoking a node revokes the nodes below it, and nothing else, with introspection and with
// status lists.
func TestCutHelpers(t *testing.T) {
	r := newRig(t)
	p := r.person()
	own := p.signIn()["access_token"].(string)
	top := p.helper(own, "actor", "top")
	middle := p.helper(top, "actor", "middle")
	low := p.helper(middle, "actor", "low")
	lowest := p.helper(low, "actor", "lowest")
	beside := p.helper(top, "actor", "beside")
	t.Run("AS-243 four deep, and no deeper", func(t *testing.T) {
		status, got := p.token(helperForm(lowest))
		wantError(t, status, got, 400, oauth.InvalidRequest)
	})
	all := map[string]string{
		"own": own, "top": top, "middle": middle, "low": low, "lowest": lowest, "beside": beside,
	}
	want := func(t *testing.T, live ...string) {
		t.Helper()
		for name, token := range all {
			r.wantActive(p, name, token, slices.Contains(live, name))
		}
	}
	want(t, "own", "top", "middle", "low", "lowest", "beside")
	t.Run("AS-243 RFC 7009: the client cuts the middle", func(t *testing.T) {
		if pg := p.post("/revoke", url.Values{"client_id": {"app"}, "token": {middle}}); pg.status != 200 {
			t.Fatalf("got %d %s", pg.status, pg.body)
		}
		want(t, "own", "top", "beside")
		if e := r.last(t, "helper.cut"); e["actor"] != "middle" || e["revoked_by"] != "client" || e["depth"] != 2.0 {
			t.Errorf("the audit: got %v", e)
		}
		for _, token := range []string{middle, low} {
			status, got := p.token(helperForm(token))
			wantError(t, status, got, 400, oauth.InvalidRequest)
		}
	})
	t.Run("AS-243 another client cuts nothing", func(t *testing.T) {
		pg := p.post("/revoke", url.Values{"token": {top}}, "Authorization", basic("static", testSecret))
		if pg.status == 200 {
			t.Errorf("got %d %s", pg.status, pg.body)
		}
		want(t, "own", "top", "beside")
	})
	t.Run("AS-243 a node of another grant in a token of ours is not believed", func(t *testing.T) {
		stranger := r.verified(t, r.person().signIn()["access_token"].(string))
		claims := r.verified(t, top)
		for name, change := range map[string]func(){
			"of another grant": func() { claims.GrantID = stranger.GrantID },
			"of no grant":      func() { claims.GrantID = "" },
			"that never was":   func() { claims.GrantID, claims.NodeID = stranger.GrantID, "nod_unknown" },
		} {
			change()
			token, err := r.Server.keys.Sign(t.Context(), oauth.AccessTokenType, claims)
			if err != nil {
				t.Fatal(err)
			}
			if got := r.introspected(p, token)["active"]; got != false {
				t.Errorf("%s: got active %v", name, got)
			}
			status, got := p.token(helperForm(token))
			wantError(t, status, got, 400, oauth.InvalidRequest)
		}
	})
	t.Run("AS-243 a pause holds helpers too, and may end", func(t *testing.T) {
		grant := r.verified(t, own)
		if err := r.store.PauseGrant(t.Context(), grant.Subject, grant.GrantID, r.now()); err != nil {
			t.Fatal(err)
		}
		want(t)
		status, got := p.token(helperForm(own))
		wantError(t, status, got, 503, oauth.TemporarilyUnavailable)
		if err := r.store.ResumeGrant(t.Context(), grant.Subject, grant.GrantID, r.now()); err != nil {
			t.Fatal(err)
		}
		want(t, "own", "top", "beside")
	})
	t.Run("AS-243 the end of the grant ends all", func(t *testing.T) {
		if pg := p.post("/revoke", url.Values{"client_id": {"app"}, "token": {own}}); pg.status != 200 {
			t.Fatalf("got %d %s", pg.status, pg.body)
		}
		want(t)
		status, got := p.token(helperForm(own))
		wantError(t, status, got, 400, oauth.InvalidRequest)
	})
}

func TestManyHelpers(t *testing.T) {
	r := newRig(t)
	p := r.person()
	own := p.signIn()["access_token"].(string)
	for range storage.MaxNodes {
		p.helper(own, "expires_in", "60")
	}
	status, got := p.token(helperForm(own))
	wantError(t, status, got, 400, oauth.InvalidRequest)
	r.advance(time.Minute)
	t.Run("AS-243 there is room again when their tokens have expired", func(t *testing.T) { p.helper(own) })
}

// AS-243: access that was revoked after the token was issued cannot be handed on.
func TestHelpersOfLess(t *testing.T) {
	scopes := func(c *Config) {
		c.Resources[0].Scopes = append(c.Resources[0].Scopes, storage.ScopeText{
			Name: "all", Description: "do everything", Implies: []string{"notes:write"},
		})
	}
	r := newRig(t, scopes)
	p := r.person()
	_, out := p.token(codeForm(p.approve(authorizeQuery("scope", "mcp all")).Get("code")))
	own := out["access_token"].(string)
	part := p.helper(own, "scope", "notes:write")
	t.Run("a scope that a scope includes", func(t *testing.T) {
		if got := r.introspected(p, part); got["scope"] != "notes:write" {
			t.Errorf("got %v", got)
		}
		status, got := p.token(helperForm(part, "scope", "all"))
		wantError(t, status, got, 400, oauth.InvalidScope)
	})
	grant := r.verified(t, own)
	err := r.store.NarrowGrant(t.Context(), grant.Subject, grant.GrantID, oauth.Scopes{"mcp"}, r.now())
	if err != nil {
		t.Fatal(err)
	}
	t.Run("AS-243 PE-10: what the person has taken from the grant", func(t *testing.T) {
		if got := r.introspected(p, part); got["scope"] != nil {
			t.Errorf("got %v", got)
		}
		for _, form := range []url.Values{helperForm(own, "scope", "notes:write"), helperForm(part)} {
			status, got := p.token(form)
			wantError(t, status, got, 400, oauth.InvalidScope)
		}
		if got := r.verified(t, p.helper(own)); got.Scope != "mcp" {
			t.Errorf("got %q", got.Scope)
		}
	})
}

func TestHelpersOff(t *testing.T) {
	r := newRig(t)
	p := r.person()
	supported := func() bool {
		return strings.Contains(p.get("/.well-known/oauth-authorization-server").body, oauth.GrantTokenExchange)
	}
	own := p.signIn()["access_token"].(string)
	token := p.helper(own)
	if !supported() {
		t.Error("AS-243 the metadata do not name the grant type")
	}
	r.restart(func(c *Config) { c.HelpersOff = true })
	if supported() {
		t.Error("AS-243 the metadata name a grant type that is turned off")
	}
	status, got := p.token(helperForm(own))
	wantError(t, status, got, 400, oauth.UnsupportedGrantType)
	r.wantActive(p, "what was handed on", token, true)
}
