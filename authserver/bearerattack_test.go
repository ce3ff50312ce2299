package authserver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/testkit/fakeissuer"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// keyed adds a client with a key and a source, and returns its signer.
func (r *bearerRig) keyed(id string, source storage.ClientSource) (assertionSigner, storage.Client) {
	r.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		r.t.Fatal(err)
	}
	set, err := json.Marshal(jose.JSONWebKeySet{
		Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "k1", Algorithm: "ES256", Use: "sig"}},
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return assertionSigner{id, jose.ES256, key}, storage.Client{
		ID: id, Name: "Keyed", RedirectURIs: []string{testRedirect}, GrantTypes: []string{oauth.GrantCode},
		AuthMethod: oauth.PrivateKeyJWT, JWKS: set, Source: source, CreatedAt: r.now(),
	}
}

// signed presents an ID-JAG for a client with a key.
func (r *bearerRig) signed(s assertionSigner, c fakeissuer.Claims) page {
	r.t.Helper()
	return r.jag(c.With(fakeissuer.Claims{"client_id": s.id}), "client_id", "", "client_secret", "",
		"client_assertion_type", assertionType,
		"client_assertion", s.sign(r.t, r.rig.claims(s.id, secrets.ID("")), nil))
}

// wantClientRefused checks that the client was not authenticated.
func (r *bearerRig) wantClientRefused(pg page) {
	r.t.Helper()
	if pg.status != http.StatusUnauthorized || !strings.Contains(pg.body, `"invalid_client"`) {
		r.t.Errorf("got %d %s, want 401 invalid_client", pg.status, pg.body)
	}
}

func TestBearerOfEachClient(t *testing.T) {
	t.Run("AS-190 a client of a document that nobody has approved signs, and its document is read", func(t *testing.T) {
		r := newBearerRig(t)
		signer, client := r.keyed("https://app.example/client.json", storage.SourceCIMD)
		docs := &described{client: client}
		r.restart(func(c *Config) {
			docs.Clients, c.Registry = c.Store, &registry{Clients: docs, Documents: docs, keys: inlineKeys{}}
		})
		stranger := r.claims().With(fakeissuer.Claims{"client_id": signer.id, "exp": r.now().Unix() - 60})
		r.refused(r.jag(stranger, "client_id", signer.id, "client_secret", ""), oauth.InvalidGrant)
		r.wantClientRefused(r.jag(r.claims(), "client_id", signer.id, "client_secret", "")) // for another client
		if docs.read > 0 {
			t.Fatal("AS-154: the document was read for a stranger")
		}
		r.wantClientRefused(r.jag(r.claims().With(fakeissuer.Claims{"client_id": signer.id}),
			"client_id", signer.id, "client_secret", "")) // without the client's signature
		docs.read = 0
		_, claims := r.granted(r.signed(signer, r.claims()))
		if claims.ClientID != signer.id || docs.read != 1 {
			t.Errorf("got %+v, the document read %d times", claims, docs.read)
		}
		if c, err := r.store.Client(t.Context(), signer.id); err != nil || c.Source != storage.SourceCIMD {
			t.Errorf("the client is not stored with its first grant: %+v, %v", c, err)
		}
	})
	t.Run("AS-190 a document without a key is a public client", func(t *testing.T) {
		r := newBearerRig(t)
		_, client := r.keyed("https://app.example/client.json", storage.SourceCIMD)
		client.AuthMethod, client.JWKS = "none", nil
		docs := &described{client: client}
		r.restart(func(c *Config) {
			docs.Clients, c.Registry = c.Store, &registry{Clients: docs, Documents: docs, keys: inlineKeys{}}
		})
		named := r.claims().With(fakeissuer.Claims{"client_id": client.ID})
		r.refused(r.jag(named, "client_id", client.ID, "client_secret", ""), oauth.UnauthorizedClient)
	})
	t.Run("AS-190 a client that registered itself is good for what its credentials are", func(t *testing.T) {
		for _, public := range []bool{false, true} {
			r := newBearerRig(t, func(e, _ *storage.TrustEntry) { e.AllowPublic = public })
			r.restart(func(c *Config) { c.Registry = &registry{Clients: c.Store, keys: inlineKeys{}} })
			signer, client := r.keyed("itself", storage.SourceDynamic)
			r.putClient(client)
			hash := storage.Hash(secrets.Hash(testSecret))
			r.putClient(storage.Client{
				ID: "secret", GrantTypes: []string{oauth.GrantCode},
				AuthMethod: "client_secret_post", SecretHash: &hash,
				RedirectURIs: []string{testRedirect}, Source: storage.SourceDynamic, CreatedAt: r.now(),
			})
			r.granted(r.signed(signer, r.claims()))
			r.wantClientRefused(r.jag(r.claims().With(fakeissuer.Claims{"client_id": "itself"}),
				"client_id", "itself", "client_secret", ""))
			secret := r.claims().With(fakeissuer.Claims{"client_id": "secret"})
			r.granted(r.jag(secret, "client_id", "secret"))
			r.wantClientRefused(r.jag(secret, "client_id", "secret", "client_secret", ""))
			pg := r.jag(r.claims().With(fakeissuer.Claims{"client_id": "app"}), "client_id", "app", "client_secret", "")
			if public {
				r.granted(pg)
				continue
			}
			r.refused(pg, oauth.UnauthorizedClient)
		}
	})
	t.Run("AS-181 AS-209 RFC 8725 3.11: no assertion passes for the other", func(t *testing.T) {
		r := newBearerRig(t)
		r.restart(func(c *Config) { c.Registry = &registry{Clients: c.Store, keys: inlineKeys{}} })
		signer, client := r.keyed("keyed", storage.SourceStatic)
		client.GrantTypes = []string{oauth.GrantClientCredentials, oauth.GrantJWTBearer}
		r.putClient(client)
		own := signer.sign(t, r.rig.claims("keyed", "own"), nil)
		r.refused(r.ask(own), oauth.InvalidGrant)
		r.refused(r.ask(own, "client_id", "", "client_secret", "", "client_assertion_type", assertionType,
			"client_assertion", own), oauth.InvalidGrant)
		same := fakeissuer.Claims{"iss": "keyed", "sub": "keyed"}
		for _, raw := range []string{
			r.acme.Sign(fakeissuer.IDJAG, r.claims()), r.ci.Sign("JWT", r.push()),
			r.ci.Sign("JWT", r.push().With(same)), r.acme.Sign(fakeissuer.IDJAG, r.claims().With(same)),
		} {
			r.wantClientRefused(r.person().post("/token", machineForm(raw)))
		}
	})
}

// AS-192: an address that resembles another one gives an account neither that address nor its name.
func TestBearerNames(t *testing.T) {
	r := newBearerRig(t)
	for sub, address := range map[string]string{
		"1": "root\u212a@acme.example", "2": "ro!ot@acme.example", "3": `"root"@acme.example`,
		"4": "ro ot@acme.example",
	} {
		_, claims := r.granted(r.jag(r.claims().With(fakeissuer.Claims{"sub": sub, "email": address})))
		u, err := r.store.User(t.Context(), claims.Subject)
		if err != nil || !strings.HasSuffix(u.Name, "@acme") {
			t.Errorf("%s: got the name %q, %v", address, u.Name, err)
		}
	}
}

// AS-192: the operator configures the names of accounts that an issuer creates; a taken name stays
// with its account.
func TestBearerAccountNames(t *testing.T) {
	r := newBearerRig(t, func(e, _ *storage.TrustEntry) { e.Subject = "{{.login}}" })
	for login, want := range map[string]string{"ann": `^ann$`, "alice": `^alice-.{6}$`, "a/nn": `^ann@acme$`} {
		_, claims := r.granted(r.jag(r.claims().With(fakeissuer.Claims{"sub": "s-" + login, "login": login})))
		u, err := r.store.User(t.Context(), claims.Subject)
		if err != nil || !regexp.MustCompile(want).MatchString(u.Name) {
			t.Errorf("%s: got the name %q, %v", login, u.Name, err)
		}
	}
}

func TestBearerPeople(t *testing.T) {
	saml := func(issuer, name string) fakeissuer.Claims {
		return fakeissuer.Claims{"sub_id": map[string]any{"format": "saml_nameid", "issuer": issuer, "nameid": name}}
	}
	newOther := func(t *testing.T) (*bearerRig, *fakeissuer.Issuer, storage.User) {
		r := newBearerRig(t)
		other := fakeissuer.New(t, "https://other.example", "k", r.now)
		err := r.store.AddTrust(t.Context(), storage.TrustEntry{
			ID: "other", Kind: storage.TrustEnterprise, Issuer: other.URL, CreatedAt: r.now(),
			TrustRules: storage.TrustRules{
				JWKS: other.JWKS(), EmailDomains: []string{"other.example"}, SAMLIssuers: []string{"urn:other:saml"},
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		r.advance(3 * time.Second)
		alice, err := r.store.UserByName(t.Context(), "alice")
		if err != nil {
			t.Fatal(err)
		}
		return r, other, alice
	}
	t.Run("AS-192 AS-230 a SAML name is that of its own company", func(t *testing.T) {
		r, other, alice := newOther(t)
		err := r.store.LinkTrust(t.Context(), storage.TrustLink{
			TrustName: storage.TrustName{Issuer: "urn:acme:saml", Kind: storage.TrustSAML, Subject: "alice"},
			UserID:    alice.ID, By: storage.LinkedByOperator, CreatedAt: r.now(),
		})
		if err != nil {
			t.Fatal(err)
		}
		foreign := other.Okta(r.as.Issuer, "agent", "mallory")
		for _, c := range []fakeissuer.Claims{
			saml("urn:acme:saml", "alice"), saml("urn:other:saml", "alice"), saml("", "alice"),
			saml("urn:acme:saml", ""), saml("urn:other:saml", "a\x00"), {"sub_id": "alice"},
			{"aud_sub": alice.ID}, {"aud_sub": "alice"},
		} {
			r.refused(r.ask(other.Sign(fakeissuer.IDJAG, foreign.With(c))), oauth.InvalidGrant)
		}
		if _, claims := r.granted(r.jag(r.claims().With(saml("urn:acme:saml", "alice")))); claims.Subject != alice.ID {
			t.Errorf("got %s, want alice", claims.Subject)
		}
		_, claims := r.granted(r.jag(r.claims().With(fakeissuer.Claims{"sub": "auth0|eve", "aud_sub": "root"})))
		if claims.Subject == alice.ID {
			t.Error("a person who is not linked is alice")
		}
	})
	t.Run("AS-192 an address links a person once, and for an issuer that may speak for its domain", func(t *testing.T) {
		r, other, alice := newOther(t)
		if err := r.store.SetMail(t.Context(), alice.ID, "alice@acme.example"); err != nil {
			t.Fatal(err)
		}
		mail := fakeissuer.Claims{"email": "alice@acme.example", "email_verified": true}
		foreign := other.Okta(r.as.Issuer, "agent", "x").With(mail)
		r.refused(r.ask(other.Sign(fakeissuer.IDJAG, foreign)), oauth.InvalidGrant)
		no := r.claims().With(mail).With(fakeissuer.Claims{"email_verified": false})
		if _, claims := r.granted(r.jag(no)); claims.Subject == alice.ID {
			t.Error("an address that is not verified has linked the person")
		}
		first := r.claims().With(mail).With(fakeissuer.Claims{"sub": "auth0|alice"})
		if _, claims := r.granted(r.jag(first)); claims.Subject != alice.ID {
			t.Errorf("got %s, want alice", claims.Subject)
		}
		second := r.claims().With(mail).With(fakeissuer.Claims{"sub": "auth0|impostor"})
		if _, claims := r.granted(r.jag(second)); claims.Subject == alice.ID {
			t.Error("another sub with the address of a person who is linked is that person")
		}
	})
}

func TestBearerHostile(t *testing.T) {
	deep := func(n int) (act any) {
		for range n {
			act = map[string]any{"sub": "x", "act": act}
		}
		return act
	}
	many := fakeissuer.Claims{}
	for i := range 600 {
		many["c"+secrets.ID("")] = i
	}
	long := strings.Repeat("x", 17<<10)
	minutes := func(r *bearerRig, iat, exp int) fakeissuer.Claims {
		now := r.now().Unix()
		return fakeissuer.Claims{"iat": now + int64(iat)*60, "exp": now + int64(exp)*60}
	}
	r := newBearerRig(t)
	is := func(name string, value any) fakeissuer.Claims { return fakeissuer.Claims{name: value} }
	const good, bad = oauth.Code(""), oauth.InvalidGrant
	for name, c := range map[string]struct {
		change fakeissuer.Claims
		code   oauth.Code
	}{
		"AS-184 a list of us alone":                        {is("aud", []string{r.as.Issuer}), good},
		"AS-184 a list of us and another":                  {is("aud", []string{r.as.Issuer, otherResource}), bad},
		"AS-184 a list of us twice":                        {is("aud", []string{r.as.Issuer, r.as.Issuer}), bad},
		"AS-184 the token endpoint":                        {is("aud", r.as.Issuer+"/token"), bad},
		"AS-184 a slash that is no alias":                  {is("aud", r.as.Issuer+"/"), bad},
		"AS-184 no list at all":                            {is("aud", map[string]any{"x": r.as.Issuer}), bad},
		"AS-189 a clock two minutes ahead":                 {minutes(r, 2, 5), bad},
		"AS-189 a clock two minutes behind: not yet over":  {minutes(r, -2, 3), good},
		"AS-189 a clock two minutes behind: over":          {minutes(r, -7, -2), bad},
		"AS-189 over before it began":                      {minutes(r, 0, -1), bad},
		"AS-189 valid for two hours":                       {minutes(r, 0, 120), bad},
		"AS-189 not yet":                                   {is("nbf", r.now().Unix()+120), bad},
		"AS-208 roles":                                     {is("roles", []string{"admin"}), good},
		"AS-187 a list of scopes":                          {is("scope", []string{"mcp"}), bad},
		"AS-231 eight actors":                              {is("act", deep(8)), bad},
		"AS-231 an actor twice":                            {is("act", json.RawMessage(`{"sub":"a","sub":"b"}`)), bad},
		"AS-231 an actor without a name":                   {is("act", map[string]any{"admin": true}), bad},
		"AS-186 a resource that is no text":                {is("resource", []any{testResource, 7}), bad},
		"AS-186 no resource in the list":                   {is("resource", []string{}), bad},
		"AS-186 a hundred resources":                       {is("resource", make([]string, 100)), bad},
		"AS-183 a sub of two kilobytes":                    {is("sub", long[:2048]), bad},
		"AS-183 17 KiB":                                    {is("x", long), bad},
		"AS-183 600 claims":                                {many, bad},
		"AS-183 a time that is text":                       {is("exp", "tomorrow"), bad},
		"AS-183 a jti that is a number":                    {is("jti", 7), bad},
		"AS-194 a key that is not a thumbprint":            {is("cnf", map[string]any{"jwk": 1}), bad},
		"AS-192 a subject with control characters":         {is("sub", "a\x00b\n"), bad},
		"AS-192 a name that is an administrator's":         {is("name", "alice").With(is("sub", "x")), good},
		"AS-238 a class of authentication that is no text": {is("acr", 1), bad},
	} {
		t.Run(name, func(t *testing.T) {
			pg := r.jag(r.claims().With(c.change))
			if c.code != good {
				r.refused(pg, c.code)
				return
			}
			reply, claims := r.granted(pg)
			alice, err := r.store.UserByName(t.Context(), "alice")
			if err != nil || reply.Scope != "mcp" || claims.Subject == alice.ID {
				t.Errorf("got %+v %+v, %v", reply, claims, err)
			}
		})
	}
	t.Run("OAuth 2.1 3.2: a parameter that is repeated", func(t *testing.T) {
		raw := r.acme.Sign(fakeissuer.IDJAG, r.claims())
		form := url.Values{
			"grant_type": {oauth.GrantJWTBearer}, "assertion": {raw}, "client_id": {"agent"},
			"client_secret": {testSecret}, "scope": {"mcp"},
		}
		for name := range form {
			twice := maps.Clone(form)
			twice[name] = append([]string{form.Get(name)}, form.Get(name))
			r.refused(r.person().post("/token", twice), oauth.InvalidRequest)
		}
		form["resource"] = []string{testResource, otherResource}
		r.refused(r.person().post("/token", form), oauth.InvalidTarget)
		form.Del("resource")
		r.granted(r.person().post("/token", form)) // none of these has used it up
	})
	t.Run("AS-232 max_ttl bounds the token", func(t *testing.T) {
		r := newBearerRig(t, func(e, _ *storage.TrustEntry) { e.MaxTTL = 5 * time.Minute })
		reply, claims := r.granted(r.jag(r.claims()))
		if reply.ExpiresIn != 300 || claims.Expires != r.now().Unix()+300 {
			t.Errorf("got %+v %+v", reply, claims)
		}
	})
}
