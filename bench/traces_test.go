package bench

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/traces"
	"github.com/mcp-authd/mcp-authd/storage/sqlite"
	"github.com/mcp-authd/mcp-authd/storage/timed"
)

// BenchmarkTraces measures what traces cost: off, as they are by default, and on, with each span sent to
// a collector on this machine, which drops it.
func BenchmarkTraces(b *testing.B) {
	run := func(b *testing.B, t *traces.Traces, on bool) {
		store, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "bench.db"), sqlite.Options{})
		if err != nil {
			b.Fatal(err)
		}
		r := newRig(b, timed.New(store, time.Now, t.Store("sqlite")))
		if on {
			r.Handler = t.Handler(r.Handler)
		}
		b.Run("client_credentials", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r.post(b, "/token", url.Values{"grant_type": {"client_credentials"}}, true)
			}
		})
		b.Run("refresh", func(b *testing.B) { r.benchRefresh(b) })
	}
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
	}))
	defer collector.Close()
	t, err := traces.New(b.Context(), traces.Config{
		Endpoint: collector.URL, Sample: 1, Issuer: issuer, Logger: slog.New(slog.DiscardHandler),
		Told: func(string, int) {},
	})
	if err != nil {
		b.Fatal(err)
	}
	defer t.Close()
	b.Run("traces=off", func(b *testing.B) { run(b, t, false) })
	b.Run("traces=on", func(b *testing.B) { run(b, t, true) })
}
