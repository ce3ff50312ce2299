package assembly

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/audit/verify"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/auditlog"
	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/internal/testkit/installation"
	"github.com/mcp-authd/mcp-authd/internal/testkit/logtest"
)

// TestCheckpointsArePosted checks that a remote receiver gets each new checkpoint (OB-04). After a
// failure, it gets the next one, and the failure is logged once.
func TestCheckpointsArePosted(t *testing.T) {
	store := installation.Store(t)
	var down atomic.Bool
	var got [][]byte
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if down.Load() || r.Header.Get("Content-Type") != "text/plain; charset=utf-8" {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		got = append(got, body)
	}))
	defer receiver.Close()
	var log logtest.Buffer
	p := Parts{
		Store: store, Keys: [][]byte{bytes.Repeat([]byte("k"), 32)}, Log: slog.New(slog.NewJSONHandler(&log, nil)),
		Config: &config.Loaded{Config: &config.Config{Issuer: "https://auth.example.com"}},
	}
	p.Config.Audit.CheckpointURL = receiver.URL + "/secret"
	signing := &checkpoints{parts: p}
	grow := func() {
		t.Helper()
		w := auditlog.NewWriter(auditlog.Options{Store: store, Now: time.Now, Log: p.Log, MAC: p.auditMAC()})
		w.Add(t.Context(), audit.UserChanged, nil)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		w.Run(ctx)
		signing.sign(t.Context())
	}
	grow()
	signing.sign(t.Context()) // no new entries
	down.Store(true)
	grow()
	grow()
	down.Store(false)
	grow()
	if len(got) != 2 {
		t.Fatalf("the receiver got %d checkpoints, want the first and the fourth", len(got))
	}
	key, err := p.AuditKeys(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, size := range []int64{1, 4} {
		if c, err := verify.OpenCheckpoint(got[i], key.Public); err != nil || c.Size != size {
			t.Errorf("got %+v, %v; want one of %d entries", c, err, size)
		}
	}
	if n := strings.Count(log.String(), "does not take them"); n != 1 || strings.Contains(log.String(), "/secret") {
		t.Errorf("the log has it %d times: %s", n, log.String())
	}
}
