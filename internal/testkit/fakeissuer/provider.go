package fakeissuer

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/mcp-authd/mcp-authd/oauth"
)

const typeOf = "urn:ietf:params:oauth:token-type:"

// Provider is a running corporate identity provider. It publishes metadata and keys, and exchanges
// ID tokens for ID-JAGs (SEP-990).
type Provider struct {
	*Issuer
	apps map[string]App
}

// App is an application that is registered at the provider.
type App struct {
	Secret string
	Client string // its client_id at other authorization servers
}

// Serve starts a provider. The keys of apps are the client ids at the provider.
func Serve(t testing.TB, apps map[string]App) *Provider {
	t.Helper()
	mux := http.NewServeMux()
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	p := &Provider{Issuer: New(t, s.URL, "company", time.Now), apps: apps}
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, map[string]any{
			"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token",
			"jwks_uri": p.URL + "/keys", "response_types_supported": []string{"code"},
			"subject_types_supported":               []string{"public"},
			"id_token_signing_alg_values_supported": []string{string(jose.ES256)},
			"code_challenge_methods_supported":      []string{"S256"},
			"grant_types_supported":                 []string{oauth.GrantTokenExchange},
		})
	})
	keys := p.JWKS()
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, keys) })
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, r *http.Request) {
		jag, err := p.exchange(r)
		if err != nil {
			answer(w, http.StatusBadRequest, map[string]any{
				"error": "invalid_request", "error_description": err.Error(),
			})
			return
		}
		answer(w, http.StatusOK, map[string]any{
			"access_token": jag, "issued_token_type": typeOf + "id-jag", "token_type": "N_A", "expires_in": 300,
		})
	})
	return p
}

func answer(w http.ResponseWriter, status int, body map[string]any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // fails only if the client is gone
}

// IDToken returns an ID token for an application and a user.
func (p *Provider) IDToken(app, subject string) string {
	p.t.Helper()
	return p.Sign("JWT", p.base(app, subject))
}

// exchange handles the request of draft-ietf-oauth-identity-assertion-authz-grant §4.3.
func (p *Provider) exchange(r *http.Request) (string, error) {
	id := r.PostFormValue("client_id")
	app, known := p.apps[id]
	if !known || app.Secret != r.PostFormValue("client_secret") {
		return "", fmt.Errorf("the application %q is not known", id)
	}
	for name, want := range map[string]string{
		"grant_type":           oauth.GrantTokenExchange,
		"requested_token_type": typeOf + "id-jag",
		"subject_token_type":   typeOf + "id_token",
	} {
		if got := r.PostFormValue(name); got != want {
			return "", fmt.Errorf("%s is %q", name, got)
		}
	}
	token, err := jwt.ParseSigned(r.PostFormValue("subject_token"), []jose.SignatureAlgorithm{jose.ES256})
	if err != nil {
		return "", err
	}
	var c jwt.Claims
	if err := token.Claims(p.key.Public(), &c); err != nil {
		return "", err
	}
	if err := c.Validate(jwt.Expected{Issuer: p.URL, AnyAudience: jwt.Audience{id}}); err != nil {
		return "", err
	}
	jag := p.base(r.PostFormValue("audience"), c.Subject).With(Claims{
		"client_id": app.Client, "resource": r.PostFormValue("resource"),
	})
	if scope := r.PostFormValue("scope"); scope != "" {
		jag["scope"] = scope
	}
	return p.Sign(IDJAG, jag), nil
}
