//go:build unix

package bench

import (
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/testkit/fakeissuer"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// BenchmarkBearer compares a token for an assertion with its two parts: the verification of the
// assertion, and a token for client credentials, which stores nothing.
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
			inTurns(b, "verify", "client_credentials", []operation{
				{"verify", jag, func(raw string) {
					if _, err := r.trust.Verify(b.Context(), raw); err != nil {
						b.Error(err)
					}
				}},
				{"client_credentials", jag, func(string) {
					r.post(b, "/token", url.Values{"grant_type": {"client_credentials"}}, true)
				}},
				{"id_jag", jag, func(raw string) {
					r.post(b, "/token", url.Values{
						"grant_type": {oauth.GrantJWTBearer}, "assertion": {raw}, "client_id": {"agent"},
						"client_secret": {r.secret},
					}, false)
				}},
				{"workload", job, func(raw string) {
					r.post(b, "/token", url.Values{"grant_type": {oauth.GrantJWTBearer}, "assertion": {raw}}, false)
				}},
			})
		})
	}
}

// operation is measured by inTurns on prepared assertions, whose signing is not measured.
type operation struct {
	name string
	make func() string
	do   func(raw string)
}

// inTurns runs the operations one after the other, in equal numbers, in turns, because the machine
// is never quiet. The figures are medians of the rounds, in processor time of this process. The
// ratios are relative to the sum of two of the operations.
func inTurns(b *testing.B, one, other string, operations []operation) {
	const turn = 16
	m := &meter{b: b}
	times, ratios := map[string][]float64{}, map[string][]float64{}
	for b.Loop() {
		for _, way := range []struct {
			name string
			run  func(o operation, made []string)
		}{
			{"", func(o operation, made []string) {
				for _, raw := range made {
					o.do(raw)
				}
			}},
			{"-at-once", func(o operation, made []string) {
				var done sync.WaitGroup
				for _, raw := range made {
					done.Go(func() { o.do(raw) })
				}
				done.Wait()
			}},
		} {
			round := map[string]float64{}
			for _, o := range operations {
				made := make([]string, turn)
				for i := range made {
					made[i] = o.make()
				}
				before := m.read().own
				way.run(o, made)
				round[o.name] = (m.read().own - before).Seconds() * 1e6 / turn
				times[o.name+way.name] = append(times[o.name+way.name], round[o.name])
			}
			for _, o := range operations {
				if o.name != one && o.name != other {
					name := o.name + way.name
					ratios[name] = append(ratios[name], round[o.name]/(round[one]+round[other]))
				}
			}
		}
	}
	b.ReportMetric(0, "ns/op") // the time of a round is meaningless
	for name, all := range times {
		b.ReportMetric(median(all), name+"-µs")
	}
	for name, all := range ratios {
		b.ReportMetric(median(all), name+"-ratio")
	}
}
