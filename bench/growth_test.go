//go:build unix

package bench

import (
	"context"
	"flag"
	"net/url"
	"testing"

	"github.com/mcp-authd/mcp-authd/authserver"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/auditlog"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

var carriedOut = flag.Int("operations", 5_000, "how many operations of each kind BenchmarkGrowth carries out")

// BenchmarkGrowth reports the bytes that each operation leaves in the database with its audit entries, as sixteen
// grants carry it out (OP-02). On PostgreSQL they include replaced rows that a vacuum gives back.
func BenchmarkGrowth(b *testing.B) {
	for _, s := range stores {
		for _, full := range []bool{false, true} {
			detail := map[bool]string{false: "standard", true: "full"}[full]
			b.Run("store="+s.name+"/detail="+detail, func(b *testing.B) { benchGrowth(b, s.open(b), full) })
		}
	}
}

// current is the audit log that events go to now.
type current struct{ *auditlog.Writer }

func benchGrowth(b *testing.B, store storage.Store, full bool) {
	b.Cleanup(func() { store.Close() })
	log := &current{newWriter(b, store, full)}
	recorder := audit.New(discarded).Into(log)
	r := newRigRecorded(b, store, nil, authserver.DPoPPolicy{}, recorder)
	var tokens [16]string
	for i := range tokens {
		tokens[i] = r.redeem(b, r.approve(b)).RefreshToken
	}
	used := settled(b, store, log)
	for _, kind := range []struct {
		unit string
		each func(i int)
	}{
		{"B/refresh", func(i int) {
			token := &tokens[i%len(tokens)]
			*token = r.refresh(b, *token).RefreshToken
		}},
		{"B/machine-token", func(int) { r.post(b, "/token", url.Values{"grant_type": {"client_credentials"}}, true) }},
		{"B/call", func(int) { callTool(b.Context(), recorder) }},
		{"B/sign-in", func(int) { r.redeem(b, r.approve(b)) }},
	} {
		log.Writer = newWriter(b, store, full)
		for i := range *carriedOut {
			kind.each(i)
		}
		before := used
		used = settled(b, store, log)
		b.ReportMetric(float64(used-before)/float64(*carriedOut), kind.unit)
	}
}

// settled returns the size of the database when the log has taken all events.
func settled(b *testing.B, store storage.Store, log *current) int64 {
	b.Helper()
	ended, end := context.WithCancel(b.Context())
	end()
	log.Run(ended)
	size, err := store.Size(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	return size.Used
}
