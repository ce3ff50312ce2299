package auditlog_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/audit/verify"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/auditlog"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

type clock struct{ at atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.at.Store(time.Now().UnixMilli())
	return c
}

func (c *clock) now() time.Time          { return time.UnixMilli(c.at.Load()) }
func (c *clock) advance(d time.Duration) { c.at.Add(d.Milliseconds()) }

// summing returns a writer that counts routine events.
func summing(s auditlog.Store, dir string, c *clock) *auditlog.Writer {
	return auditlog.NewWriter(auditlog.Options{
		Store: s, Dir: dir, Now: c.now, Log: slog.New(slog.DiscardHandler), MAC: macOf(s),
	})
}

func refreshed(t *testing.T, w *auditlog.Writer, n int, grant string, more ...slog.Attr) {
	for i := range n {
		w.Add(t.Context(), audit.TokenRefreshed, append([]slog.Attr{
			slog.String("grant", grant), slog.String("user", "usr_alice"), slog.String("scope", "notes:read"),
			slog.String("jti", fmt.Sprint("token", i)), slog.String("request_id", fmt.Sprint("req", i)),
			slog.String("remote", fmt.Sprint("203.0.113.", i%250)),
		}, more...))
	}
}

// kept returns a line per entry of an event: its grant, count and the given field.
func (db database) kept(t *testing.T, event, field string) (out []string) {
	t.Helper()
	all, err := db.AuditEntries(t.Context(), storage.AuditQuery{Below: db.size(t), Event: event, Limit: 1000})
	must(t, err)
	for _, e := range all {
		read, err := verify.ParseEntry(e.Leaf)
		must(t, err)
		out = append(out, strings.TrimSpace(e.Grant+" "+read.Fields["count"]+" "+read.Fields[field]))
	}
	return out
}

// TestRoutineEvents: OP-02. The first of several similar events is an entry, and one more counts
// the rest. All other events, and those from another network, are entries.
func TestRoutineEvents(t *testing.T) {
	db, c := onSQLite(t), newClock()
	w := summing(db, t.TempDir(), c)
	refreshed(t, w, 100, "grt_a")
	refreshed(t, w, 1, "grt_b")
	refreshed(t, w, 1, "grt_a", slog.String("scope", "notes:write"))
	w.Add(t.Context(), audit.TokenRefreshed, []slog.Attr{
		slog.String("grant", "grt_a"), slog.String("user", "usr_alice"), slog.String("scope", "notes:read"),
		slog.String("remote", "198.51.100.7"),
	})
	for i := range 100 { // from a hundred networks
		w.Add(t.Context(), audit.TokenRefreshed, []slog.Attr{
			slog.String("grant", "grt_d"), slog.String("remote", fmt.Sprintf("10.0.%d.1", i)),
		})
	}
	for i, outcome := range []string{"ok", "ok", "error", "error", "ok"} {
		call := []slog.Attr{slog.String("grant", "grt_c"), slog.String("outcome", outcome)}
		if i == 4 {
			call = append(call, slog.String("clearance", "clr_1"))
		}
		w.Add(t.Context(), audit.ToolCalled, call)
	}
	for _, kind := range []string{"client_credentials", "authorization_code"} {
		for range 2 {
			w.Add(t.Context(), audit.TokenIssued, []slog.Attr{slog.String("grant_type", kind)})
		}
	}
	drain(t, w)
	for _, want := range []struct{ event, field, kept string }{
		{
			audit.TokenRefreshed, "jti",
			"grt_a  token0|grt_b  token0|grt_a  token0|grt_a|" + strings.Repeat("grt_d|", 8) + "grt_a 99|grt_d 92",
		},
		{
			audit.TokenRefreshed, "remote",
			"grt_a  203.0.113.0|grt_b  203.0.113.0|grt_a  203.0.113.0|grt_a  198.51.100.7|" +
				"grt_d  10.0.0.1|grt_d  10.0.1.1|grt_d  10.0.2.1|grt_d  10.0.3.1|grt_d  10.0.4.1|grt_d  10.0.5.1|" +
				"grt_d  10.0.6.1|grt_d  10.0.7.1|grt_a 99|grt_d 92",
		},
		{audit.ToolCalled, "outcome", "grt_c  ok|grt_c  error|grt_c  error|grt_c  ok|grt_c 1 ok"},
		{
			audit.TokenIssued, "grant_type",
			"client_credentials|authorization_code|authorization_code|1 client_credentials",
		},
	} {
		if got := strings.Join(db.kept(t, want.event, want.field), "|"); got != want.kept {
			t.Errorf("OP-02: %s has %q, want %q", want.event, got, want.kept)
		}
	}
	sign := signer(t, db)
	checkpoint(t, sign)
	if _, err := auditlog.Verify(t.Context(), db, keyOf(sign)); err != nil {
		t.Error(err)
	}
}

// TestFullDetail: OP-02. With full detail, each event is an entry.
func TestFullDetail(t *testing.T) {
	db := onSQLite(t)
	w := auditlog.NewWriter(auditlog.Options{
		Store: db, Now: time.Now, Log: slog.New(slog.DiscardHandler), MAC: macOf(db), Full: true,
	})
	refreshed(t, w, 5, "grt_a")
	drain(t, w)
	if got := db.kept(t, audit.TokenRefreshed, "jti"); len(got) != 5 {
		t.Errorf("OP-02: got %v, want five entries", got)
	}
}

// TestKilledSums: OP-02. Counts of a killed server are recorded at the next start, once, without
// the events that are in the log already.
func TestKilledSums(t *testing.T) {
	db, c, dir := onSQLite(t), newClock(), t.TempDir()
	w := summing(db, dir, c)
	refreshed(t, w, 10, "grt_a")
	refreshed(t, w, 5, "grt_b")
	c.advance(16 * time.Minute)
	runFor(t, w, func() bool { return len(db.kept(t, audit.TokenRefreshed, "")) == 4 })
	refreshed(t, w, 3, "grt_b") // a writer that ended does not remove this file, like a killed one
	files, err := filepath.Glob(filepath.Join(dir, "*.sums"))
	if err != nil || len(files) != 1 {
		t.Fatalf("OP-02: %v, %v", files, err)
	}
	content, err := os.ReadFile(files[0])
	must(t, err)
	for range 2 { // the second time as if restored from a backup
		dir := t.TempDir()
		must(t, os.WriteFile(filepath.Join(dir, filepath.Base(files[0])), content, 0o600))
		next := summing(db, dir, c)
		runFor(t, next, func() bool { return empty(t, dir) })
		got := strings.Join(db.kept(t, audit.TokenRefreshed, ""), "|")
		if want := "grt_a|grt_b|grt_a 9|grt_b 4|grt_b 3"; got != want {
			t.Errorf("OP-02: the log has %q, want %q", got, want)
		}
	}
}
