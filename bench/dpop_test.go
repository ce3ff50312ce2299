//go:build unix

package bench

import (
	"bytes"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver"
	"github.com/mcp-authd/mcp-authd/internal/dpop"
	"github.com/mcp-authd/mcp-authd/internal/proofstore"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// BenchmarkDPoP compares a DPoP-bound client credentials token with its minimum cost: a plain
// token, and checking the signature of the proof. All take turns, because the machine is never
// quiet. The figures are medians of the rounds, in processor time and, for "wall", in elapsed time.
// The ratios are of processor time. They exclude the client, which makes the proofs.
func BenchmarkDPoP(b *testing.B) {
	for _, s := range stores {
		b.Run("store="+s.name, func(b *testing.B) { benchmarkDPoP(b, s.open) })
	}
}

func benchmarkDPoP(b *testing.B, open func(b *testing.B) storage.Store) {
	const turn = 8 // operations: few, so that other processes seldom interrupt them
	signer, err := dpop.Generate()
	if err != nil {
		b.Fatal(err)
	}
	memory, store := newRig(b, open(b)), open(b)
	database := newRigWith(b, store, nil, authserver.DPoPPolicy{Replays: proofstore.New(store, "token")})
	var proofs [3][turn]string
	var parsed [turn]*dpop.Proof
	form := url.Values{"grant_type": {"client_credentials"}}
	bound := func(r *rig, proof string) {
		if body := r.postProved(b, "/token", form, true, proof); !bytes.Contains(body, []byte(`"token_type":"DPoP"`)) {
			b.Fatalf("the token is not bound: %s", body)
		}
	}
	kinds := []struct {
		name string
		run  func(i int)
	}{
		{"plain", func(int) { memory.post(b, "/token", form, true) }},
		{"verify", func(i int) {
			if err := parsed[i].Verify(); err != nil {
				b.Fatal(err)
			}
		}},
		{"bound", func(i int) { bound(memory, proofs[0][i]) }},
		{"database", func(i int) { bound(database, proofs[1][i]) }},
	}
	m := &meter{b: b}
	times, ratios := map[string][]float64{}, map[string][]float64{}
	for b.Loop() {
		for i := range turn {
			for j := range proofs {
				proofs[j][i], err = signer.Proof(dpop.Claims{
					Method: http.MethodPost,
					URL:    issuer + "/token",
					Now:    time.Now(),
				})
				if err != nil {
					b.Fatal(err)
				}
			}
			if parsed[i], err = dpop.Parse(proofs[2][i]); err != nil {
				b.Fatal(err)
			}
		}
		round := map[string]float64{}
		for _, k := range kinds {
			before, start := m.read().own, time.Now()
			for i := range turn {
				k.run(i)
			}
			round[k.name] = (m.read().own - before).Seconds() * 1e6 / turn
			times[k.name+"-wall"] = append(times[k.name+"-wall"], time.Since(start).Seconds()*1e6/turn)
			times[k.name] = append(times[k.name], round[k.name])
		}
		for _, name := range []string{"bound", "database"} {
			ratios[name] = append(ratios[name], round[name]/(round["plain"]+round["verify"]))
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
