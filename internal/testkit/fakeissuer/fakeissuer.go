// Package fakeissuer plays issuers of assertions for tests: corporate identity providers that issue
// ID-JAGs, and platforms that run workloads. The assertions look like those of real products.
package fakeissuer

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"maps"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// IDJAG is the type of an ID-JAG.
const IDJAG = "oauth-id-jag+jwt"

// Issuer signs assertions with one key.
type Issuer struct {
	URL string // iss
	kid string
	key *ecdsa.PrivateKey
	now func() time.Time
	t   testing.TB
}

// Claims are the claims of an assertion.
type Claims map[string]any

// With returns the claims with changes. nil removes a claim.
func (c Claims) With(changes Claims) Claims {
	out := maps.Clone(c)
	for name, value := range changes {
		if out[name] = value; value == nil {
			delete(out, name)
		}
	}
	return out
}

// New returns an issuer with a new key. Its assertions use the time of now.
func New(t testing.TB, url, kid string, now func() time.Time) *Issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &Issuer{URL: url, kid: kid, key: key, now: now, t: t}
}

// Key returns the public key of the issuer.
func (i *Issuer) Key() jose.JSONWebKey {
	return jose.JSONWebKey{Key: i.key.Public(), KeyID: i.kid, Algorithm: string(jose.ES256), Use: "sig"}
}

// JWKS returns the JSON Web Key Set of the issuer.
func (i *Issuer) JWKS() string {
	i.t.Helper()
	b, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{i.Key()}})
	if err != nil {
		i.t.Fatal(err)
	}
	return string(b)
}

// OddKeys returns keys that go-jose does not support, as issuers publish them next to usable ones.
func OddKeys() map[string]string {
	return map[string]string{
		"ML-DSA":                 `{"kty":"AKP","alg":"ML-DSA-44","kid":"odd","use":"sig","pub":"AAAA"}`,
		"secp256k1":              `{"kty":"EC","crv":"secp256k1","kid":"odd","x":"` + thirtyTwo + `","y":"` + thirtyTwo + `"}`,
		"X25519":                 `{"kty":"OKP","crv":"X25519","kid":"odd","use":"enc","x":"` + thirtyTwo + `"}`,
		"Ed448":                  `{"kty":"OKP","crv":"Ed448","kid":"odd","use":"sig","x":"` + thirtyTwo + `"}`,
		"RSA without n":          `{"kty":"RSA","kid":"odd","use":"sig","e":"AQAB"}`,
		"no kty":                 `{"kid":"odd","use":"sig"}`,
		"a bad x5c":              `{"kty":"OKP","crv":"Ed25519","kid":"odd","x":"` + thirtyTwo + `","x5c":["AAAA"]}`,
		"a kid that is a number": `{"kty":"OKP","crv":"Ed25519","kid":5,"x":"` + thirtyTwo + `"}`,
		"for encryption":         `{"kty":"OKP","crv":"Ed25519","kid":"odd","use":"enc","x":"` + thirtyTwo + `"}`,
		"symmetric":              `{"kty":"oct","kid":"odd","k":"` + thirtyTwo + `"}`,
		"no object":              `5`,
		"null":                   `null`,
	}
}

// thirtyTwo is 32 bytes in base64url.
const thirtyTwo = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"

// Sign returns an assertion of a type.
func (i *Issuer) Sign(typ string, c Claims) string {
	i.t.Helper()
	payload, err := json.Marshal(c)
	if err != nil {
		i.t.Fatal(err)
	}
	signer, err := jose.NewSigner(
		jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: i.key, KeyID: i.kid}},
		(&jose.SignerOptions{}).WithType(jose.ContentType(typ)))
	if err != nil {
		i.t.Fatal(err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		i.t.Fatal(err)
	}
	raw, err := signed.CompactSerialize()
	if err != nil {
		i.t.Fatal(err)
	}
	return raw
}

// base returns the claims that every assertion has. They are valid for five minutes.
func (i *Issuer) base(audience, subject string) Claims {
	now := i.now().Unix()
	return Claims{
		"iss": i.URL, "sub": subject, "aud": audience, "iat": now, "exp": now + 300, "jti": "id-" + rand.Text(),
	}
}

// Okta returns the claims of an ID-JAG from Okta. It has no resource.
func (i *Issuer) Okta(audience, clientID, subject string) Claims {
	return i.base(audience, subject).With(Claims{
		"client_id": clientID, "jti": "IDAAG." + rand.Text(), "scope": "mcp",
		"act": map[string]any{"sub": "0oa1agent", "sub_profile": "ai_agent"},
	})
}

// Auth0 returns the claims of an ID-JAG from Auth0. It has a resource.
func (i *Issuer) Auth0(audience, clientID, subject, resource string) Claims {
	return i.base(audience, "auth0|"+subject).With(Claims{
		"client_id": clientID, "resource": resource, "scope": "mcp", "email": subject + "@acme.example",
	})
}

// Keycloak returns the claims of an ID-JAG from Keycloak. It has a list of resources and the
// authentication context.
func (i *Issuer) Keycloak(audience, clientID, subject string, resources ...string) Claims {
	return i.base(audience, subject).With(Claims{
		"client_id": clientID, "resource": resources, "scope": "mcp notes:write", "typ": "ID-JAG",
		"acr": "phr", "amr": []string{"hwk", "user"}, "auth_time": i.now().Add(-time.Minute).Unix(),
	})
}

// GitHub returns the claims of a GitHub Actions job token.
func (i *Issuer) GitHub(audience, repository, ref string) Claims {
	return i.base(audience, "repo:"+repository+":ref:"+ref).With(Claims{
		"repository": repository, "ref": ref, "event_name": "push", "workflow": "deploy", "actor": "octocat",
	})
}

// Kubernetes returns the claims of a Kubernetes service account token.
func (i *Issuer) Kubernetes(audience, namespace, account string) Claims {
	return i.base(audience, "system:serviceaccount:"+namespace+":"+account).With(Claims{
		"aud": []string{audience},
		"kubernetes.io": map[string]any{
			"namespace": namespace, "serviceaccount": map[string]any{"name": account, "uid": "u-1"},
		},
	})
}

// SPIFFE returns the claims of a JWT-SVID. It has no jti.
func (i *Issuer) SPIFFE(audience, path string) Claims {
	return i.base(audience, "spiffe://acme.example/"+path).With(Claims{"jti": nil, "aud": []string{audience}})
}
