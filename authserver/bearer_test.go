package authserver

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/testkit/fakeissuer"
	"github.com/mcp-authd/mcp-authd/internal/trust"
	"github.com/mcp-authd/mcp-authd/oauth"
)

const otherResource = "https://other.example.com/mcp"

// bearerRig is a server that trusts an identity provider and a platform that runs workloads.
type bearerRig struct {
	*rig
	acme, ci *fakeissuer.Issuer
}

func newBearerRig(t *testing.T, change ...func(enterprise, workload *storage.TrustEntry)) *bearerRig {
	t.Helper()
	r := &bearerRig{rig: newRig(t, func(c *Config) {
		c.Resources[0].Scopes = append(c.Resources[0].Scopes, storage.ScopeText{Name: "admin", ACR: "phr"},
			storage.ScopeText{Name: "pay", MaxAge: storage.Age(2 * time.Minute)})
		c.Resources = append(c.Resources, storage.Resource{
			URI: otherResource, Name: "Other", Scopes: []storage.ScopeText{{Name: "mcp", Default: true}},
		})
	})}
	r.acme = fakeissuer.New(t, "https://acme.example/", "k", r.now)
	r.ci = fakeissuer.New(t, "https://ci.example", "k", r.now)
	enterprise := storage.TrustEntry{
		ID: "acme", Kind: storage.TrustEnterprise, Issuer: r.acme.URL,
		TrustRules: storage.TrustRules{
			JWKS: r.acme.JWKS(), CreatePeople: true, EmailDomains: []string{"acme.example"},
			SAMLIssuers: []string{"urn:acme:saml"},
		},
	}
	workload := storage.TrustEntry{
		ID: "ci", Kind: storage.TrustWorkload, Issuer: r.ci.URL,
		TrustRules: storage.TrustRules{
			JWKS: r.ci.JWKS(), Resources: []string{testResource}, Scopes: oauth.Scopes{"mcp", "admin"},
			Match: []storage.TrustMatch{
				{Claim: "repository", Equals: "o/r"}, {Claim: "ref", Equals: "refs/heads/main"},
			},
		},
	}
	for _, f := range change {
		f(&enterprise, &workload)
	}
	for _, e := range []storage.TrustEntry{enterprise, workload} {
		e.CreatedAt = r.now()
		if err := r.store.AddTrust(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	issuers, err := trust.New(trust.Options{Issuer: r.as.Issuer, Store: r.store, Now: r.now, Log: r.as.Logger})
	if err != nil {
		t.Fatal(err)
	}
	r.restart(func(c *Config) { c.Trust = issuers })
	hash := storage.Hash(secrets.Hash(testSecret))
	for id, method := range map[string]string{"agent": "client_secret_basic", "open": "none"} {
		c := storage.Client{
			ID: id, Name: id, GrantTypes: []string{oauth.GrantJWTBearer}, AuthMethod: method,
			Source: storage.SourceStatic, CreatedAt: r.now(),
		}
		if method != "none" {
			c.SecretHash = &hash
		}
		r.putClient(c)
	}
	return r
}

// claims returns the claims of an ID-JAG for the client agent.
func (r *bearerRig) claims() fakeissuer.Claims {
	return r.acme.Auth0(r.as.Issuer, "agent", "ada", testResource)
}

// ask presents an assertion as the client agent, with further parameters; an empty one is left out.
func (r *bearerRig) ask(assertion string, more ...string) page {
	r.t.Helper()
	v := url.Values{
		"grant_type": {oauth.GrantJWTBearer}, "assertion": {assertion},
		"client_id": {"agent"}, "client_secret": {testSecret},
	}
	for i := 0; i+1 < len(more); i += 2 {
		if v.Set(more[i], more[i+1]); more[i+1] == "" {
			v.Del(more[i])
		}
	}
	return r.person().post("/token", v)
}

func (r *bearerRig) jag(c fakeissuer.Claims, more ...string) page {
	return r.ask(r.acme.Sign(fakeissuer.IDJAG, c), more...)
}

// job presents a workload token without any client credentials.
func (r *bearerRig) job(c fakeissuer.Claims, more ...string) page {
	return r.ask(r.ci.Sign("JWT", c), append([]string{"client_id", "", "client_secret", ""}, more...)...)
}

func (r *bearerRig) push() fakeissuer.Claims {
	return r.ci.GitHub(r.as.Issuer, "o/r", "refs/heads/main")
}

// granted returns the token of an answer.
func (r *bearerRig) granted(pg page) (oauth.TokenResponse, oauth.AccessTokenClaims) {
	r.t.Helper()
	var out oauth.TokenResponse
	if pg.status != http.StatusOK || json.Unmarshal([]byte(pg.body), &out) != nil {
		r.t.Fatalf("got %d %s, want a token", pg.status, pg.body)
	}
	return out, r.verified(r.t, out.AccessToken)
}

// refused checks that an answer is a 400 with a code (AS-233).
func (r *bearerRig) refused(pg page, code oauth.Code) {
	r.t.Helper()
	var out struct{ Error oauth.Code }
	if json.Unmarshal([]byte(pg.body), &out) != nil || pg.status != http.StatusBadRequest || out.Error != code {
		r.t.Errorf("got %d %s, want 400 %s", pg.status, pg.body, code)
	}
}

func TestBearer(t *testing.T) {
	t.Run("AS-179 AS-185 AS-191 AS-193 AS-232 an ID-JAG gets a token of its person, and no refresh token", func(t *testing.T) {
		r := newBearerRig(t)
		reply, claims := r.granted(r.jag(r.claims()))
		u, err := r.store.UserByName(t.Context(), "ada@acme.example")
		if err != nil {
			t.Fatal(err)
		}
		if reply.RefreshToken != "" || reply.ExpiresIn != 900 || reply.Scope != "mcp" || claims.Subject != u.ID ||
			claims.ClientID != "agent" || claims.Audience != testResource || claims.GrantID == "" {
			t.Errorf("got %+v %+v", reply, claims)
		}
		if e := r.last(t, "token.issued"); e["trust"] != "acme" {
			t.Errorf("got %v", e)
		}
	})
	t.Run("AS-192 the same sub is the same person, whatever the address; the same address of another issuer is not",
		func(t *testing.T) {
			r := newBearerRig(t)
			_, first := r.granted(r.jag(r.claims()))
			_, again := r.granted(r.jag(r.claims().With(fakeissuer.Claims{"email": "countess@acme.example"})))
			_, other := r.granted(r.jag(r.claims().With(fakeissuer.Claims{"sub": "auth0|eve"})))
			if again.Subject != first.Subject || other.Subject == first.Subject {
				t.Errorf("got %s, then %s and %s", first.Subject, again.Subject, other.Subject)
			}
		})
	t.Run("AS-185 AS-190 AS-206 which client may present it", func(t *testing.T) {
		r := newBearerRig(t)
		r.refused(r.jag(r.claims().With(fakeissuer.Claims{"client_id": "machine"})), oauth.InvalidGrant)
		r.refused(r.jag(r.claims().With(fakeissuer.Claims{"client_id": "machine"}), "client_id", "machine"),
			oauth.UnauthorizedClient)
		open := r.claims().With(fakeissuer.Claims{"client_id": "open"})
		r.refused(r.jag(open, "client_id", "open", "client_secret", ""), oauth.UnauthorizedClient)
		if pg := r.jag(r.claims(), "client_secret", "wrong"); pg.status != http.StatusUnauthorized {
			t.Errorf("got %d %s", pg.status, pg.body)
		}
		if pg := r.jag(r.claims(), "client_id", "", "client_secret", ""); pg.status != http.StatusUnauthorized {
			t.Errorf("got %d %s", pg.status, pg.body)
		}
		public := newBearerRig(t, func(e, _ *storage.TrustEntry) { e.AllowPublic = true })
		open = public.claims().With(fakeissuer.Claims{"client_id": "open"})
		public.granted(public.jag(open, "client_id", "open", "client_secret", ""))
	})
	t.Run("AS-186 the resource", func(t *testing.T) { bearerResources(t) })
	t.Run("AS-187 the scopes", func(t *testing.T) { bearerScopes(t) })
	t.Run("AS-188 AS-233 an assertion is good once, unless it may be resubmitted", func(t *testing.T) {
		r := newBearerRig(t)
		raw := r.acme.Sign(fakeissuer.IDJAG, r.claims())
		r.granted(r.ask(raw))
		r.refused(r.ask(raw), oauth.InvalidGrant)
		again := newBearerRig(t, func(e, _ *storage.TrustEntry) { e.Resubmit = true })
		raw = again.acme.Sign(fakeissuer.IDJAG, again.claims())
		again.granted(again.ask(raw))
		again.granted(again.ask(raw))
	})
	t.Run("AS-194 a demand for a key is not passed over", func(t *testing.T) {
		r := newBearerRig(t)
		cnf := map[string]any{"jkt": strings.Repeat("A", 43)}
		r.refused(r.jag(r.claims().With(fakeissuer.Claims{"cnf": cnf})), oauth.InvalidGrant)
	})
	t.Run("AS-194 AS-212 a proof of that key meets it, and the token is bound to it", func(t *testing.T) {
		r := newBearerRig(t)
		p, key := r.person(), newSigner(t)
		cnf := map[string]any{"jkt": key.Thumbprint()}
		form := url.Values{
			"grant_type": {oauth.GrantJWTBearer}, "client_id": {"agent"}, "client_secret": {testSecret},
			"assertion": {r.acme.Sign(fakeissuer.IDJAG, r.claims().With(fakeissuer.Claims{"cnf": cnf}))},
		}
		r.refused(p.post("/token", form, "DPoP", p.proof(newSigner(t))), oauth.InvalidGrant)
		status, out := p.token(form, "DPoP", p.proof(key))
		p.wantBound(status, out, key)
	})
	t.Run("AS-195 the log has no assertion", func(t *testing.T) {
		r := newBearerRig(t)
		raw := r.acme.Sign(fakeissuer.IDJAG, r.claims())
		r.granted(r.ask(raw))
		r.refused(r.ask(raw), oauth.InvalidGrant)
		for _, part := range strings.Split(raw, ".") {
			if strings.Contains(r.log.String(), part) {
				t.Errorf("the log has %q", part)
			}
		}
	})
	t.Run("AS-231 how the person proved who they are reaches token, audit and introspection", func(t *testing.T) {
		r := newBearerRig(t)
		c := r.acme.Keycloak(r.as.Issuer, "agent", "ada", testResource).With(fakeissuer.Claims{
			"act": map[string]any{"sub": "helper", "admin": true},
		})
		reply, claims := r.granted(r.jag(c))
		if claims.ACR != "phr" || !slices.Equal(claims.AMR, []string{"hwk", "user"}) ||
			claims.AuthTime != r.now().Add(-time.Minute).Unix() || claims.Act == nil || claims.Act.Subject != "helper" {
			t.Errorf("got %+v", claims)
		}
		if e := r.last(t, "token.issued"); e["acr"] != "phr" || e["amr"] != "hwk user" {
			t.Errorf("got %v", e)
		}
		if in, err := r.Introspect(t.Context(), reply.AccessToken); err != nil || in.ACR != "phr" || in.Act == nil {
			t.Errorf("got %+v, %v", in, err)
		}
	})
	t.Run("AS-238 a scope that demands a proof is granted for that proof alone", func(t *testing.T) {
		r := newBearerRig(t)
		c := r.acme.Keycloak(r.as.Issuer, "agent", "ada", testResource)
		c = c.With(fakeissuer.Claims{"scope": "mcp admin pay"})
		reply, _ := r.granted(r.jag(c))
		if reply.Scope != "mcp admin pay" || reply.ExpiresIn != 60 { // the authentication is a minute old
			t.Errorf("got %+v", reply)
		}
		c = c.With(fakeissuer.Claims{"acr": "gold", "auth_time": nil, "jti": "j2"})
		if reply, _ := r.granted(r.jag(c)); reply.Scope != "mcp" {
			t.Errorf("got %+v", reply)
		}
		r.refused(r.jag(c.With(fakeissuer.Claims{"jti": "j3"}), "scope", "admin"), oauth.InvalidScope)
	})
	t.Run("AS-232 it ends with the person, the entry and the client", func(t *testing.T) { bearerEnds(t) })
}

func bearerResources(t *testing.T) {
	r := newBearerRig(t)
	named := func(resource any) fakeissuer.Claims { return r.claims().With(fakeissuer.Claims{"resource": resource}) }
	for name, c := range map[string]struct {
		claim   any
		request string
		want    string
		code    oauth.Code
	}{
		"named":                           {testResource, "", testResource, ""},
		"absent: the default":             {nil, "", testResource, ""},
		"absent: that of the request":     {nil, otherResource, otherResource, ""},
		"a list: the first that is known": {[]string{"https://x.example/mcp", otherResource}, "", otherResource, ""},
		"a list: that of the request":     {[]string{otherResource, testResource}, testResource, testResource, ""},
		"unknown":                         {"https://x.example/mcp", "", "", oauth.InvalidGrant},
		"another one than the request":    {testResource, otherResource, "", oauth.InvalidTarget},
	} {
		t.Run(name, func(t *testing.T) {
			pg := r.jag(named(c.claim), "resource", c.request)
			if c.code != "" {
				r.refused(pg, c.code)
				return
			}
			if _, claims := r.granted(pg); claims.Audience != c.want {
				t.Errorf("got %s, want %s", claims.Audience, c.want)
			}
		})
	}
	only := newBearerRig(t, func(e, _ *storage.TrustEntry) { e.Resources = []string{otherResource} })
	only.refused(only.jag(only.claims()), oauth.InvalidTarget)
	_, claims := only.granted(only.jag(only.claims().With(fakeissuer.Claims{"resource": nil})))
	if claims.Audience != otherResource {
		t.Errorf("got %s", claims.Audience)
	}
}

func bearerScopes(t *testing.T) {
	r := newBearerRig(t, func(e, _ *storage.TrustEntry) { e.Scopes = oauth.Scopes{"mcp", "notes:write"} })
	for name, c := range map[string]struct{ claim, request, want string }{
		"that of the assertion":           {"mcp notes:write", "", "mcp notes:write"},
		"fewer, as requested":             {"mcp notes:write", "notes:write", "notes:write"},
		"no more than the assertion says": {"mcp", "mcp notes:write", "mcp"},
		"no more than the entry allows":   {"mcp admin", "", "mcp"},
		"never offline_access":            {"mcp offline_access", "mcp offline_access", "mcp"},
		"none that it names is known":     {"x", "", ""},
		"none that is requested is left":  {"mcp", "notes:write", ""},
	} {
		t.Run(name, func(t *testing.T) {
			pg := r.jag(r.claims().With(fakeissuer.Claims{"scope": c.claim}), "scope", c.request)
			if c.want == "" {
				r.refused(pg, oauth.InvalidScope)
				return
			}
			if reply, _ := r.granted(pg); reply.Scope != c.want {
				t.Errorf("got %q, want %q", reply.Scope, c.want)
			}
		})
	}
}

func bearerEnds(t *testing.T) {
	r := newBearerRig(t)
	reply, claims := r.granted(r.jag(r.claims()))
	active := func(want bool) {
		t.Helper()
		if in, err := r.Introspect(t.Context(), reply.AccessToken); err != nil || in.Active != want {
			t.Errorf("active: got %v, %v, want %v", in.Active, err, want)
		}
	}
	active(true)
	if err := r.store.SetUserDisabled(t.Context(), claims.Subject, true, r.now()); err != nil {
		t.Fatal(err)
	}
	active(false)
	r.refused(r.jag(r.claims()), oauth.InvalidGrant)
	if err := r.store.SetUserDisabled(t.Context(), claims.Subject, false, r.now()); err != nil {
		t.Fatal(err)
	}
	r.refused(r.jag(r.claims()), oauth.InvalidGrant) // in the same second
	r.advance(time.Second)
	reply, _ = r.granted(r.jag(r.claims()))
	unused := r.claims()
	if err := r.store.StopEverything(t.Context(), claims.Subject, r.now()); err != nil {
		t.Fatal(err)
	}
	active(false)
	r.advance(time.Second)
	r.refused(r.jag(unused), oauth.InvalidGrant)
	active(false)
	reply, _ = r.granted(r.jag(r.claims()))
	if err := r.store.DisableTrust(t.Context(), "acme", r.now()); err != nil {
		t.Fatal(err)
	}
	active(false)
	r.refused(r.jag(r.claims()), oauth.InvalidGrant) // on a replica that does not know yet
	r.advance(3 * time.Second)
	r.refused(r.jag(r.claims()), oauth.InvalidGrant)
}

func TestBearerWorkloads(t *testing.T) {
	t.Run("AS-197 AS-199 AS-207 a job gets a token with no client; one that is named is tolerated", func(t *testing.T) {
		r := newBearerRig(t)
		reply, claims := r.granted(r.job(r.push()))
		const name = "workload:ci:repo:o/r:ref:refs/heads/main"
		if claims.ClientID != name || claims.Subject != name || claims.Audience != testResource ||
			reply.RefreshToken != "" || reply.Scope != "mcp" { // admin requires a user's authentication
			t.Errorf("got %+v %+v", reply, claims)
		}
		_, again := r.granted(r.job(r.push(), "client_id", "whoever"))
		if again.ClientID != name || again.GrantID != claims.GrantID {
			t.Errorf("got %+v, want another token of the same grant", again)
		}
	})
	t.Run("AS-208 no workload takes the name of another by what its claims begin with", func(t *testing.T) {
		r := newBearerRig(t, func(_, w *storage.TrustEntry) { w.Subject = "{{.sub}}" })
		_, a := r.granted(r.job(r.push().With(fakeissuer.Claims{"sub": "job"})))
		_, b := r.granted(r.job(r.push().With(fakeissuer.Claims{"sub": "ci:job"})))
		if a.ClientID != "workload:ci:job" || b.ClientID != "workload:ci:ci:job" {
			t.Errorf("got %q and %q", a.ClientID, b.ClientID)
		}
	})
	t.Run("AS-200 no assertion", func(t *testing.T) {
		r := newBearerRig(t)
		r.refused(r.ask(""), oauth.InvalidRequest)
	})
	t.Run("AS-207 a resource is needed where there could be several", func(t *testing.T) {
		r := newBearerRig(t, func(_, w *storage.TrustEntry) { w.Resources, w.Scopes = nil, nil })
		r.refused(r.job(r.push()), oauth.InvalidTarget)
		if _, claims := r.granted(r.job(r.push(), "resource", otherResource)); claims.Audience != otherResource {
			t.Errorf("got %+v", claims)
		}
		r.refused(r.job(r.push(), "resource", "https://x.example/mcp"), oauth.InvalidTarget)
	})
	t.Run("AS-206 AS-208 claims are no way to more", func(t *testing.T) {
		r := newBearerRig(t)
		c := r.push().With(fakeissuer.Claims{
			"scope": "admin", "resource": otherResource, "client_id": "agent", "acr": "phr",
			"act": map[string]any{"sub": "x"}, "aud_sub": "alice", "email": "ada@acme.example",
		})
		reply, claims := r.granted(r.job(c))
		if reply.Scope != "mcp" || claims.Audience != testResource || claims.ACR != "" || claims.Act != nil ||
			!strings.HasPrefix(claims.ClientID, "workload:ci:") {
			t.Errorf("got %+v", claims)
		}
		r.refused(r.job(r.push(), "scope", "notes:write"), oauth.InvalidScope)
		r.refused(r.job(r.push(), "scope", "admin"), oauth.InvalidScope)
	})
	t.Run("AS-204 AS-209 forks, other branches, and ID-JAGs of a platform", func(t *testing.T) {
		r := newBearerRig(t)
		r.refused(r.job(r.ci.GitHub(r.as.Issuer, "evil/r", "refs/heads/main")), oauth.InvalidGrant)
		r.refused(r.job(r.ci.GitHub(r.as.Issuer, "o/r", "refs/heads/x")), oauth.InvalidGrant)
		jag := r.push().With(fakeissuer.Claims{"client_id": "agent"})
		r.refused(r.ask(r.ci.Sign(fakeissuer.IDJAG, jag)), oauth.InvalidGrant)
		r.refused(r.ask(r.acme.Sign("JWT", r.claims())), oauth.InvalidGrant)
		forged := r.claims()
		r.refused(r.ask(r.ci.Sign(fakeissuer.IDJAG, forged)), oauth.InvalidGrant) // kid of one issuer, iss of the other
	})
	t.Run("AS-234 without an id the assertion itself is good once", func(t *testing.T) {
		no := false
		r := newBearerRig(t, func(_, w *storage.TrustEntry) {
			w.RequireJTI, w.Match = &no, []storage.TrustMatch{{Claim: "sub", Glob: "spiffe://acme.example/*"}}
		})
		raw := r.ci.Sign("JWT", r.ci.SPIFFE(r.as.Issuer, "job"))
		none := []string{"client_id", "", "client_secret", ""}
		r.granted(r.ask(raw, none...))
		r.refused(r.ask(raw, none...), oauth.InvalidGrant)
	})
}

// AS-34: the metadata lists a grant profile while it has a trust entry.
func TestBearerMetadata(t *testing.T) {
	r := newBearerRig(t)
	document := func() (out struct {
		Grants   []string `json:"grant_types_supported"`
		Profiles []string `json:"authorization_grant_profiles_supported"`
	}) {
		pg := r.person().get("/.well-known/oauth-authorization-server")
		if err := json.Unmarshal([]byte(pg.body), &out); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(pg.body, "acme.example") || strings.Contains(pg.body, "ci.example") {
			t.Errorf("it names an issuer: %s", pg.body)
		}
		return out
	}
	end := func(id string) {
		if err := r.store.DisableTrust(t.Context(), id, r.now()); err != nil {
			t.Fatal(err)
		}
		r.advance(3 * time.Second)
	}
	t.Run("AS-180 AS-198 the grant and its profile are there while an issuer is trusted", func(t *testing.T) {
		d := document()
		if !slices.Contains(d.Grants, oauth.GrantJWTBearer) || !slices.Equal(d.Profiles, []string{oauth.ProfileIDJAG}) {
			t.Errorf("got %+v", d)
		}
		end("acme")
		if d := document(); !slices.Contains(d.Grants, oauth.GrantJWTBearer) || d.Profiles != nil {
			t.Errorf("without an identity provider: got %+v", d)
		}
		end("ci")
		if d := document(); slices.Contains(d.Grants, oauth.GrantJWTBearer) || d.Profiles != nil {
			t.Errorf("without any: got %+v", d)
		}
	})
	t.Run("RU-21 AS-25 without a trusted issuer the grant type is not supported", func(t *testing.T) {
		for _, form := range []url.Values{
			{"grant_type": {oauth.GrantJWTBearer}, "assertion": {"x"}},
			{"grant_type": {oauth.GrantJWTBearer}, "assertion": {"x"}, "client_id": {"unknown"}},
		} {
			status, got := r.person().token(form)
			wantError(t, status, got, 400, oauth.UnsupportedGrantType)
			status, got = newRig(t, func(c *Config) { c.Trust = nil }).person().token(form)
			wantError(t, status, got, 400, oauth.UnsupportedGrantType)
		}
	})
}
