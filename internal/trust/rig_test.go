package trust

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

const (
	us       = "https://auth.example"
	company  = "https://idp.example"
	platform = "https://tokens.example"
)

// signer signs assertions as an issuer does.
type signer struct {
	key any
	alg jose.SignatureAlgorithm
	kid string
}

func newSigner(t testing.TB, kid string) signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return signer{key, jose.ES256, kid}
}

// published returns the key set that the issuer publishes.
func published(t testing.TB, signers ...signer) string {
	t.Helper()
	set := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{}}
	for _, s := range signers {
		public := s.key.(interface{ Public() crypto.PublicKey }).Public()
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: public, KeyID: s.kid, Algorithm: string(s.alg), Use: "sig"})
	}
	b, err := json.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// claims are the claims of an assertion. A nil value in a change removes a claim.
type claims map[string]any

func (c claims) with(changes claims) claims {
	out := maps.Clone(c)
	for name, v := range changes {
		if out[name] = v; v == nil {
			delete(out, name)
		}
	}
	return out
}

func (s signer) sign(t testing.TB, typ string, c claims) string {
	t.Helper()
	b, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return s.signText(t, typ, string(b))
}

func (s signer) signText(t testing.TB, typ, payload string) string {
	t.Helper()
	o := (&jose.SignerOptions{}).WithHeader("kid", s.kid)
	if typ != "" {
		o = o.WithType(jose.ContentType(typ))
	}
	js, err := jose.NewSigner(jose.SigningKey{Algorithm: s.alg, Key: s.key}, o)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := js.Sign([]byte(payload))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// rig has two trusted issuers: a company and a platform.
type rig struct {
	now               time.Time
	company, platform signer
	entries           []storage.TrustEntry
}

func newRig(t testing.TB) *rig {
	r := &rig{now: time.Unix(1_790_000_000, 0), company: newSigner(t, "c1"), platform: newSigner(t, "p1")}
	r.entries = []storage.TrustEntry{
		{ID: "company", Kind: Enterprise, Issuer: company, TrustRules: storage.TrustRules{
			JWKS: published(t, r.company), AudienceAliases: []string{us + "/"}, EmailDomains: []string{"example.com"},
			SAMLIssuers: []string{"https://saml.example"},
		}},
		{ID: "ci", Kind: Workload, Issuer: platform, TrustRules: storage.TrustRules{
			JWKS: published(t, r.platform), AudienceAliases: []string{"mcp"}, Subject: "ci:{{.repository}}",
			Match: []storage.TrustMatch{
				{Claim: "repository", Equals: "o/r"}, {Claim: "ref", Glob: "refs/heads/*"},
				{Expression: `claims.event_name != nil && claims.event_name in ["push", "schedule"]`},
			},
		}},
	}
	return r
}

func (r *rig) issuers(t testing.TB, store Lister) *Issuers {
	t.Helper()
	i, err := New(Options{
		Issuer: us, Entries: r.entries, Store: store, Now: func() time.Time { return r.now },
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// idJAG returns a company's claims about a user.
func (r *rig) idJAG() claims {
	return claims{
		"iss": company, "sub": "u1", "aud": us, "client_id": "c", "jti": "j1", "iat": r.now.Unix(),
		"exp": r.now.Add(5 * time.Minute).Unix(), "scope": "notes:read", "resource": "https://mcp.example/mcp",
	}
}

// build returns a platform's claims about a build, in the format of GitHub.
func (r *rig) build() claims {
	return claims{
		"iss": platform, "sub": "repo:o/r:ref:refs/heads/main", "aud": us, "jti": "j1", "iat": r.now.Unix(),
		"nbf": r.now.Add(-time.Minute).Unix(), "exp": r.now.Add(5 * time.Minute).Unix(), "repository": "o/r",
		"ref": "refs/heads/main", "event_name": "push", "scope": "admin", "resource": "https://mcp.example/admin",
	}
}

func verify(t testing.TB, i *Issuers, raw string) (Assertion, *Refusal) {
	t.Helper()
	a, err := i.Verify(context.Background(), raw)
	var r *Refusal
	if err != nil && !errors.As(err, &r) {
		t.Fatalf("got %v, want a refusal", err)
	}
	return a, r
}
