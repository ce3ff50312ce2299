package mcptest

import (
	"bytes"
	"compress/zlib"
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/mcp-authd/mcp-authd/mcpresource"
)

const (
	keysPath       = "/jwks.json"
	statusPath     = "/status"
	introspectPath = "/introspect"
)

// endpoints returns the handler of the issuer's endpoints.
func (i *Issuer) endpoints() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{
			"issuer": i.URL, "jwks_uri": i.URL + keysPath, "introspection_endpoint": i.URL + introspectPath,
			"response_types_supported": []string{},
		})
	})
	mux.HandleFunc("GET "+keysPath, func(w http.ResponseWriter, _ *http.Request) {
		answer(w, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{i.public()}})
	})
	mux.HandleFunc("GET "+statusPath, i.serveStatus)
	mux.HandleFunc("POST "+introspectPath, func(w http.ResponseWriter, r *http.Request) {
		answer(w, i.introspect(r.PostFormValue("token")))
	})
	return mux
}

func answer(w http.ResponseWriter, document any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(document) // fails only if the client is gone
}

// public returns the published key.
func (i *Issuer) public() jose.JSONWebKey {
	i.mu.Lock()
	defer i.mu.Unlock()
	return jose.JSONWebKey{
		Key: i.key.Public(), KeyID: strconv.Itoa(i.kid), Algorithm: string(jose.ES256), Use: "sig",
	}
}

// statusTTL is how long other servers may use a status list, the shortest time that they accept.
const statusTTL = time.Second

// serveStatus serves the status list (OAuth Token Status List §5.1).
func (i *Issuer) serveStatus(w http.ResponseWriter, _ *http.Request) {
	var packed bytes.Buffer
	z := zlib.NewWriter(&packed)
	_, _ = z.Write(i.statuses()) // a buffer takes everything
	_ = z.Close()
	now := i.Now()
	token, err := i.sign("statuslist+jwt", map[string]any{
		"sub": i.URL + statusPath, "iss": i.URL, "iat": now.Unix(), "exp": now.Add(lifetime).Unix(),
		"ttl": statusTTL.Seconds(),
		"status_list": map[string]any{
			"bits": 1, "lst": base64.RawURLEncoding.EncodeToString(packed.Bytes()),
		},
	})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/statuslist+jwt")
	_, _ = w.Write([]byte(token)) // fails only if the client is gone
}

// statuses returns a bit for each token, which is set for a revoked token.
func (i *Issuer) statuses() []byte {
	i.mu.Lock()
	defer i.mu.Unlock()
	bits := make([]byte, len(i.persons)/8+1)
	for n := range i.revoked {
		bits[n/8] |= 1 << (n % 8)
	}
	return bits
}

// introspect returns the introspection of a token (RFC 7662 §2.2): its claims if it is valid.
func (i *Issuer) introspect(token string) map[string]any {
	inactive := map[string]any{"active": false}
	jws, err := jose.ParseSignedCompact(token, []jose.SignatureAlgorithm{jose.ES256})
	if err != nil {
		return inactive
	}
	key := i.public()
	payload, err := jws.Verify(&key)
	var times struct {
		Expires int64 `json:"exp"`
		Status  struct {
			List struct {
				Index *int `json:"idx"`
			} `json:"status_list"`
		}
	}
	var claims map[string]any
	if err != nil || json.Unmarshal(payload, &times) != nil || json.Unmarshal(payload, &claims) != nil {
		return inactive
	}
	i.mu.Lock()
	place := times.Status.List.Index
	revoked := place != nil && i.revoked[*place]
	i.mu.Unlock()
	if revoked || !i.Now().Before(time.Unix(times.Expires, 0)) {
		return inactive
	}
	claims["active"], claims["token_type"] = true, "Bearer"
	return claims
}

// validate validates a token as [mcpresource.NewJWTValidator] does.
func (i *Issuer) validate(ctx context.Context, c mcpresource.Credential) (*mcpresource.Principal, error) {
	v, err := i.current()
	if err != nil {
		return nil, err
	}
	return v.Validate(ctx, c)
}

// current returns the validator, which lasts until a key or a status changes.
func (i *Issuer) current() (mcpresource.Validator, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.validator != nil {
		return i.validator, nil
	}
	v, err := mcpresource.NewJWTValidator(mcpresource.JWTConfig{
		Issuer: i.URL, JWKSURL: i.URL + keysPath, Now: i.Now,
		HTTPClient: &http.Client{Transport: direct{i.handler}},
	})
	if err == nil {
		i.validator = v
	}
	return v, err
}

// forget discards the validator with all that it has cached. The issuer's lock must be held. A test
// need not wait until the keys and statuses in a cache are old.
func (i *Issuer) forget() { i.validator = nil }

// direct sends requests to a handler without a connection.
type direct struct{ http.Handler }

// RoundTrip implements http.RoundTripper.
func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	return w.Result(), nil
}
