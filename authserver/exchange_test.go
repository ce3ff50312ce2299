package authserver

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/delegation"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

const typeAccessToken = "urn:ietf:params:oauth:token-type:access_token"

const upstreamToken = "ya29.the-token-of-the-provider"

func exchangeForm(token any, change ...string) url.Values {
	v := url.Values{
		"grant_type": {oauth.GrantTokenExchange}, "subject_token": {token.(string)},
		"subject_token_type": {typeAccessToken}, "audience": {"google"},
	}
	for i := 0; i+1 < len(change); i += 2 {
		if change[i+1] == "" {
			v.Del(change[i])
		} else {
			v.Set(change[i], change[i+1])
		}
	}
	return v
}

func TestExchange(t *testing.T) {
	r, f := delegated(t)
	p := r.person()
	out := p.signInAt("google")
	subject := out["access_token"]
	rs := []string{"Authorization", basic("machine", testSecret)}
	f.token = delegation.Token{
		Token: upstreamToken, Type: "Bearer", Scopes: oauth.Scopes{"calendar", "openid"},
		ExpiresAt: r.now().Add(time.Hour),
	}
	t.Run("AS-229 RS-202 RFC 8693: a resource server gets the token of its caller", func(t *testing.T) {
		status, got := p.token(exchangeForm(subject, "scope", "calendar"), rs...)
		if status != 200 || got["access_token"] != upstreamToken || got["issued_token_type"] != typeAccessToken ||
			got["token_type"] != "Bearer" ||
			got["expires_in"] != 3600.0 || got["scope"] != "calendar openid" {
			t.Errorf("got %d %v", status, got)
		}
		asked := f.asked[len(f.asked)-1]
		if asked.Provider != "google" || asked.UserID != "usr_googleada" || asked.Resource != testResource ||
			!slices.Equal(asked.Scopes, oauth.Scopes{"calendar"}) || !strings.HasPrefix(asked.UpstreamID, "ups_") {
			t.Errorf("AS-217: asked for %+v", asked)
		}
	})
	t.Run("AS-229 a token whose lifetime is unknown", func(t *testing.T) {
		f.set(func(f *providers) { f.token.ExpiresAt = time.Time{} })
		defer f.set(func(f *providers) { f.token.ExpiresAt = r.now().Add(time.Hour) })
		if _, got := p.token(exchangeForm(subject, "subject_token_type", "urn:ietf:params:oauth:token-type:jwt"),
			rs...); got["access_token"] != upstreamToken || got["expires_in"] != nil {
			t.Errorf("got %v", got)
		}
	})
	t.Run("AS-80 SP-28 it is not cached, audited without the token, and neither token is logged", func(t *testing.T) {
		pg := p.post("/token", exchangeForm(subject), rs...)
		log := r.log.String()
		if pg.header.Get("Cache-Control") != "no-store" || strings.Contains(log, upstreamToken) ||
			strings.Contains(log, subject.(string)) ||
			!strings.Contains(log,
				`"event":"token.exchanged","client_id":"machine","user":"usr_googleada","resource":"`+testResource+
					`","connector":"google"`) {
			t.Errorf("got %v %.300s", pg.header, log)
		}
	})
	hash := r.hashOf(t)
	for _, c := range []storage.Client{
		{ID: "other-rs", AuthMethod: "client_secret_basic", SecretHash: hash, Source: storage.SourceStatic,
			Resources: []string{"https://other.example.com"}},
		{ID: "any-rs", AuthMethod: "client_secret_basic", SecretHash: hash, Source: storage.SourceStatic},
		{ID: "self-made", AuthMethod: "client_secret_basic", SecretHash: hash, Source: storage.SourceDynamic,
			Resources: []string{testResource}},
	} {
		c.CreatedAt = r.now()
		if err := r.store.PutClient(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	confidential := storage.Client{
		ID: "agent", AuthMethod: "client_secret_basic", SecretHash: hash, Source: storage.SourceStatic,
		CreatedAt:    r.now(),
		RedirectURIs: []string{testRedirect}, GrantTypes: []string{oauth.GrantCode, oauth.GrantClientCredentials},
		Resources: []string{testResource},
	}
	if err := r.store.PutClient(t.Context(), confidential); err != nil {
		t.Fatal(err)
	}
	agent := []string{"Authorization", basic("agent", testSecret)}
	q := r.person()
	back := q.back(callback(t, "google", q.leave(authorizeQuery("provider", "google", "client_id", "agent"))))
	_, own := q.token(codeForm(responseOf(t, back).Get("code"), "client_id", ""), agent...)
	_, machine := p.token(url.Values{"grant_type": {oauth.GrantClientCredentials}}, rs...)
	before := len(f.asked)
	for _, tt := range []struct {
		name   string
		form   url.Values
		header []string
		status int
		code   oauth.Code
	}{
		{"AS-229 a client without credentials", exchangeForm(subject, "client_id", "app"), nil, 400,
			oauth.UnauthorizedClient},
		{"AS-229 no client", exchangeForm(subject), nil, 401, oauth.InvalidClient},
		{"AS-229 a wrong secret", exchangeForm(subject), []string{"Authorization", basic("machine", "wrong")}, 401,
			oauth.InvalidClient},
		{"AS-229 a client that registered itself", exchangeForm(subject),
			[]string{"Authorization", basic("self-made", testSecret)}, 400, oauth.UnauthorizedClient},
		{"AS-229 RS-202 the server of another resource", exchangeForm(subject),
			[]string{"Authorization", basic("other-rs", testSecret)}, 400, oauth.InvalidRequest},
		{"AS-229 a client of no resource in particular", exchangeForm(subject),
			[]string{"Authorization", basic("any-rs", testSecret)}, 400, oauth.InvalidRequest},
		{"AS-229 no subject token", exchangeForm(subject, "subject_token", ""), rs, 400, oauth.InvalidRequest},
		{"AS-229 SP-05 a token that is not ours", exchangeForm("x"), rs, 400, oauth.InvalidRequest},
		{"RS-202 the MCP client itself, which may name the resource as a machine", exchangeForm(own["access_token"]),
			agent, 400, oauth.InvalidRequest},
		{"AS-229 a refresh token", exchangeForm(out["refresh_token"]), rs, 400, oauth.InvalidRequest},
		{"AS-229 a token of a machine", exchangeForm(machine["access_token"]), rs, 400, oauth.InvalidRequest},
		{"AS-229 no type", exchangeForm(subject, "subject_token_type", ""), rs, 400, oauth.InvalidRequest},
		{"AS-229 another type",
			exchangeForm(subject, "subject_token_type", "urn:ietf:params:oauth:token-type:id_token"), rs, 400,
			oauth.InvalidRequest},
		{"AS-229 another type back",
			exchangeForm(subject, "requested_token_type", "urn:ietf:params:oauth:token-type:refresh_token"), rs, 400,
			oauth.InvalidRequest},
		{"AS-229 an actor", exchangeForm(subject, "actor_token", "x"), rs, 400, oauth.InvalidRequest},
		{"AS-229 no audience", exchangeForm(subject, "audience", ""), rs, 400, oauth.InvalidRequest},
		{"AS-229 a resource", exchangeForm(subject, "resource", testResource), rs, 400, oauth.InvalidTarget},
	} {
		t.Run(tt.name, func(t *testing.T) {
			status, got := p.token(tt.form, tt.header...)
			wantError(t, status, got, tt.status, tt.code)
		})
	}
	t.Run("AS-229 two audiences, or a token in the address", func(t *testing.T) {
		form := exchangeForm(subject)
		form.Add("audience", "github")
		status, got := p.token(form, rs...)
		wantError(t, status, got, 400, oauth.InvalidTarget)
		if pg := p.post("/token?subject_token=x", exchangeForm(subject), rs...); pg.status != 400 {
			t.Errorf("got %d", pg.status)
		}
	})
	if len(f.asked) != before {
		t.Error("the broker was asked on behalf of a person who may not")
	}
	t.Run("AS-218 AS-229 the session has ended", func(t *testing.T) {
		f.end(t, "google")
		status, got := p.token(exchangeForm(subject), rs...)
		wantError(t, status, got, 400, oauth.InvalidRequest)
	})
}

func (r *rig) hashOf(t *testing.T) *storage.Hash {
	t.Helper()
	c, err := r.store.Client(t.Context(), "machine")
	if err != nil {
		t.Fatal(err)
	}
	return c.SecretHash
}

func TestExchangeNeedsThePerson(t *testing.T) {
	r, f := delegated(t)
	p := r.person()
	subject := p.signInAt("google")["access_token"]
	rs := []string{"Authorization", basic("machine", testSecret)}
	f.token, f.tokenErr = delegation.Token{Scopes: oauth.Scopes{"calendar"}},
		oauth.NewError(oauth.InteractionRequired, "The person has to allow this at Google first.")
	t.Run("RS-198 RS-201 interaction_required says where, by a URL that tells nothing", func(t *testing.T) {
		status, got := p.token(exchangeForm(subject), rs...)
		wantError(t, status, got, 400, oauth.InteractionRequired)
		uri, _ := got["interaction_uri"].(string)
		if !strings.HasPrefix(uri, r.Issuer()+"/connect/") || len(uri) > 600 || strings.Contains(uri, "ada") ||
			strings.Contains(uri, "?") {
			t.Errorf("got %q", uri)
		}
		req, err := r.links.Open(strings.TrimPrefix(uri, r.Issuer()+"/connect/"))
		if err != nil || req.UserID != "usr_googleada" || req.Provider != "google" || req.Resource != testResource ||
			!slices.Equal(req.Scopes, oauth.Scopes{"calendar"}) {
			t.Errorf("got %+v, %v", req, err)
		}
	})
	for _, tt := range []struct {
		err    error
		status int
		code   oauth.Code
	}{
		{oauth.NewError(oauth.InvalidTarget, "No."), 400, oauth.InvalidTarget},
		{oauth.NewError(oauth.InvalidScope, "No."), 400, oauth.InvalidScope},
		{errNotNow, 503, oauth.TemporarilyUnavailable},
		{storage.ErrRevoked, 400, oauth.InvalidRequest},
		{json.Unmarshal([]byte("x"), &struct{}{}), 503, oauth.TemporarilyUnavailable},
	} {
		t.Run("AS-229 "+string(tt.code)+" is passed on, and leads nowhere", func(t *testing.T) {
			f.set(func(f *providers) { f.tokenErr = tt.err })
			status, got := p.token(exchangeForm(subject), rs...)
			wantError(t, status, got, tt.status, tt.code)
			if got["interaction_uri"] != nil {
				t.Errorf("got %v", got)
			}
		})
	}
	t.Run("AS-25 AS-229 the metadata lists the grant with a broker, or with helpers, only", func(t *testing.T) {
		if pg := p.get("/.well-known/oauth-authorization-server"); !strings.Contains(pg.body,
			oauth.GrantTokenExchange) {
			t.Error("not listed")
		}
		bare := newRig(t, func(c *Config) { c.HelpersOff = true }).person()
		if pg := bare.get("/.well-known/oauth-authorization-server"); strings.Contains(pg.body,
			oauth.GrantTokenExchange) {
			t.Error("listed")
		}
		status, got := bare.token(exchangeForm("x"), rs...)
		wantError(t, status, got, 400, oauth.UnsupportedGrantType)
		asserted := exchangeForm("x")
		asserted.Set("requested_token_type", oauth.TokenTypeIDJAG)
		status, got = bare.token(asserted) // RU-21: for all clients and purposes
		wantError(t, status, got, 400, oauth.UnsupportedGrantType)
	})
}
