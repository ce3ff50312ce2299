//go:build unix

package bench

import (
	"net/url"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/testkit/fakeissuer"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/storage"
)

// BenchmarkBearer measures a token for an assertion, beside its two parts: the verification of the
// assertion, and a token by client credentials, for which nothing is stored.
func BenchmarkBearer(b *testing.B) {
	for _, s := range stores {
		b.Run("store="+s.name, func(b *testing.B) {
			company := fakeissuer.New(b, "https://id.example.com", "k", time.Now)
			ci := fakeissuer.New(b, "https://ci.example.com", "k", time.Now)
			entries := []storage.TrustEntry{
				{
					ID: "company", Kind: storage.TrustEnterprise, Issuer: company.URL, Config: true,
					TrustRules: storage.TrustRules{JWKS: company.JWKS(), CreatePeople: true},
				},
				{
					ID: "ci", Kind: storage.TrustWorkload, Issuer: ci.URL, Config: true,
					TrustRules: storage.TrustRules{
						JWKS: ci.JWKS(), Match: []storage.TrustMatch{{Claim: "repository", Equals: "o/r"}},
					},
				},
			}
			r := newRigWith(b, s.open(b), entries, authserver.DPoPPolicy{})
			hash := storage.Hash(secrets.Hash(r.secret))
			agent := storage.Client{
				ID: "agent", GrantTypes: []string{oauth.GrantJWTBearer}, AuthMethod: "client_secret_post",
				SecretHash: &hash, Source: storage.SourceStatic, CreatedAt: time.Now(),
			}
			if err := r.store.PutClient(b.Context(), agent); err != nil {
				b.Fatal(err)
			}
			jag := func() string {
				return company.Sign(fakeissuer.IDJAG, company.Okta(issuer, "agent", "ada"))
			}
			job := func() string { return ci.Sign("JWT", ci.GitHub(issuer, "o/r", "refs/heads/main")) }
			// each runs an operation on assertions that are made before: their signatures are not measured.
			each := func(b *testing.B, assertion func() string, use func(raw string)) {
				made := make([]string, b.N)
				for i := range made {
					made[i] = assertion()
				}
				m := &meter{b: b}
				b.ReportAllocs()
				b.ResetTimer()
				m.start()
				for _, raw := range made {
					use(raw)
				}
				b.StopTimer()
				m.report(b)
			}
			b.Run("verify", func(b *testing.B) {
				each(b, jag, func(raw string) {
					if _, err := r.trust.Verify(b.Context(), raw); err != nil {
						b.Fatal(err)
					}
				})
			})
			b.Run("client_credentials", func(b *testing.B) {
				each(b, jag, func(string) {
					r.post(b, "/token", url.Values{"grant_type": {"client_credentials"}}, true)
				})
			})
			b.Run("id_jag", func(b *testing.B) {
				each(b, jag, func(raw string) {
					r.post(b, "/token", url.Values{
						"grant_type": {oauth.GrantJWTBearer}, "assertion": {raw}, "client_id": {"agent"},
						"client_secret": {r.secret},
					}, false)
				})
			})
			b.Run("workload", func(b *testing.B) {
				each(b, job, func(raw string) {
					r.post(b, "/token", url.Values{"grant_type": {oauth.GrantJWTBearer}, "assertion": {raw}}, false)
				})
			})
		})
	}
}
