package fakeidp

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
)

type signingKey struct {
	id  string
	key *ecdsa.PrivateKey
}

func newSigningKey() *signingKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err) // tests need randomness
	}
	return &signingKey{"key-" + random(6), key}
}

// random returns n random bytes in base64url.
func random(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return base64.RawURLEncoding.EncodeToString(b)
}

// RotateKeys replaces the signing keys. The old ones are no longer published.
func (u *Upstream) RotateKeys() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.retired = append(u.retired, u.keys...)
	u.keys = []*signingKey{newSigningKey()}
}

func (u *Upstream) publish(w http.ResponseWriter, _ *http.Request) {
	u.mu.Lock()
	defer u.mu.Unlock()
	var set jose.JSONWebKeySet
	for _, k := range u.keys {
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: k.key.Public(), KeyID: k.id, Algorithm: "ES256", Use: "sig"})
	}
	writeJSON(w, http.StatusOK, set)
}

func (u *Upstream) discovery(w http.ResponseWriter, _ *http.Request) {
	u.mu.Lock()
	defer u.mu.Unlock()
	doc := map[string]any{
		"issuer": u.URL, "authorization_endpoint": u.URL + "/authorize", "token_endpoint": u.URL + "/token",
		"userinfo_endpoint": u.URL + "/userinfo", "jwks_uri": u.URL + "/keys",
		"revocation_endpoint": u.URL + "/revoke", "introspection_endpoint": u.URL + "/introspect",
		"response_types_supported": []string{"code"}, "subject_types_supported": []string{"public"},
		"id_token_signing_alg_values_supported": []string{"ES256"},
		"scopes_supported": []string{
			"openid", "profile", "email", "groups", "offline_access", "repo",
		},
		"token_endpoint_auth_methods_supported":          []string{"client_secret_basic", "client_secret_post"},
		"code_challenge_methods_supported":               []string{"S256"},
		"authorization_response_iss_parameter_supported": !u.behaviour.NoResponseIssuer,
		"backchannel_logout_supported":                   true, "backchannel_logout_session_supported": true,
	}
	if u.behaviour.EditMetadata != nil {
		u.behaviour.EditMetadata(doc)
	}
	writeJSON(w, http.StatusOK, doc)
}

// idToken returns a signed ID token. The caller holds u.mu.
func (u *Upstream) idToken(s *session, nonce, accessToken string) string {
	now := u.now()
	claims := map[string]any{
		"iss": u.URL, "sub": s.subject, "aud": u.ClientID, "exp": now.Add(10 * time.Minute).Unix(), "iat": now.Unix(),
		"auth_time": s.began.Unix(), "sid": s.id, "at_hash": hash(accessToken),
	}
	if nonce != "" {
		claims["nonce"] = nonce
	}
	if p := u.person(s.subject); p != nil {
		maps.Copy(claims, p.claims())
	}
	header := map[string]any{"typ": "JWT"}
	if u.behaviour.EditIDToken != nil {
		u.behaviour.EditIDToken(header, claims)
	}
	return u.sign(header, claims)
}

func hash(accessToken string) string {
	sum := sha256.Sum256([]byte(accessToken))
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}

func (p *Person) claims() map[string]any {
	c := map[string]any{
		"name": p.Name, "preferred_username": p.Login, "email": p.Email, "email_verified": !p.Unverified,
	}
	maps.Copy(c, p.Claims)
	return c
}

// sign returns a JWT. The caller holds u.mu.
func (u *Upstream) sign(header, claims map[string]any) string {
	payload, err := json.Marshal(claims)
	if err != nil {
		panic(err)
	}
	k := u.keys[len(u.keys)-1]
	key := jose.SigningKey{Algorithm: jose.ES256, Key: k.key}
	options := (&jose.SignerOptions{}).WithHeader("kid", k.id)
	switch u.behaviour.Sign {
	case SignNone:
		h, _ := json.Marshal(map[string]any{"alg": "none", "typ": header["typ"]})
		return base64.RawURLEncoding.EncodeToString(h) + "." + base64.RawURLEncoding.EncodeToString(payload) + "."
	case SignHMAC:
		key = jose.SigningKey{Algorithm: jose.HS256, Key: []byte(strings.Repeat(u.ClientSecret, 3))}
	case SignWrongKey:
		key.Key = newSigningKey().key
	case SignUnknown:
		other := newSigningKey()
		key.Key, options = other.key, (&jose.SignerOptions{}).WithHeader("kid", other.id)
	}
	for name, value := range header {
		options.WithHeader(jose.HeaderKey(name), value)
	}
	signer, err := jose.NewSigner(key, options)
	if err != nil {
		panic(err)
	}
	jws, err := signer.Sign(payload)
	if err != nil {
		panic(err)
	}
	out, err := jws.CompactSerialize()
	if err != nil {
		panic(err)
	}
	if u.behaviour.Sign == SignTruncated {
		out = out[:len(out)-40]
	}
	return out
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}
