//go:build unix

package bench

import (
	"bytes"
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/auditlog"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// BenchmarkAudit measures the cost of an audit log entry for this process (OB-06). It measures
// until the entry is in the queue file, and then with the entry's share of a batch.
func BenchmarkAudit(b *testing.B) {
	b.Run("file", func(b *testing.B) {
		b.ReportAllocs()
		var r *audit.Recorder
		began := cpu(b)
		for n := 0; b.Loop(); n++ {
			if n%10000 == 0 { // fewer than a writer has wait
				r = audit.New(discarded).Into(newWriter(b, nil, true))
			}
			callTool(b.Context(), r)
		}
		perEntry(b, began, b.N)
	})
	for _, s := range stores {
		b.Run("file-and-log/store="+s.name, func(b *testing.B) {
			store := s.open(b)
			b.Cleanup(func() { store.Close() })
			w := newWriter(b, store, true)
			running(b, w.Run)
			r := audit.New(discarded).Into(w)
			began := cpu(b)
			b.ReportAllocs()
			for b.Loop() {
				for range turn - 1 {
					callTool(b.Context(), r)
				}
				ctx, pending := audit.Awaited(b.Context())
				callTool(ctx, r)
				if err := pending.Wait(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			perEntry(b, began, b.N*turn)
		})
	}
}

// newWriter returns a writer with the default detail, or with full detail.
func newWriter(b *testing.B, store storage.Store, full bool) *auditlog.Writer {
	return auditlog.NewWriter(auditlog.Options{
		Store: store, Dir: b.TempDir(), Now: time.Now, Log: discarded, Full: full,
		MAC: auditlog.MACOf(store, [][]byte{bytes.Repeat([]byte("k"), 32)}, "auth.example.com/audit", time.Now),
	})
}

func callTool(ctx context.Context, r *audit.Recorder) {
	r.Keep(ctx, audit.ToolCalled, slog.String("grant", "grt_Zf3kq9T1v0x2Lw7p"),
		slog.String("user", "usr_Zf3kq9T1v0x2Lw7p"), slog.String("client_id", "app"),
		slog.String("resource", resource), slog.String("tool", "search"), slog.String("outcome", "ok"),
		slog.String("arguments_digest", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
		slog.String("jti", "tok_Zf3kq9T1v0x2Lw7pZf3k"), audit.Remote("127.0.0.1:4711"))
}

func perEntry(b *testing.B, began time.Duration, entries int) {
	b.ReportMetric(float64((cpu(b)-began).Nanoseconds())/1000/float64(entries), "µs-CPU/entry")
}
