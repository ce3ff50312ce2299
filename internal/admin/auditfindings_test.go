package admin_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/auditlog"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// unsigned is a store whose checkpoints are gone.
type unsigned struct{ storage.Store }

func (unsigned) LastCheckpoint(context.Context) (storage.AuditCheckpoint, error) {
	return storage.AuditCheckpoint{}, storage.ErrNotFound
}

// TestLostEntriesAreFound checks that health reports lost entries for a month (OP-01).
func TestLostEntriesAreFound(t *testing.T) {
	s := installed(t)
	at := s.Now()
	s.Now = func() time.Time { return at }
	found := func() string {
		h, err := admin.HealthShow.Do(t.Context(), s.As(admin.Actor{Role: admin.Auditor}), admin.None{})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range h.Findings {
			if f.Check == "audit" && strings.Contains(f.What, "lost") {
				return f.Level + ": " + f.What
			}
		}
		return ""
	}
	keep(t, s, func(ctx context.Context, w *auditlog.Writer) {
		w.Add(ctx, audit.AuditLost, []slog.Attr{slog.Int64("entries", 7), slog.Time("since", at.Add(-time.Hour))})
	})
	if got := found(); !strings.HasPrefix(got, admin.LevelWarning) || !strings.HasSuffix(got, ": 7") {
		t.Errorf("got %q", got)
	}
	if at = at.Add(31 * 24 * time.Hour); found() != "" {
		t.Errorf("after a month: %q", found())
	}
}

// TestAuditFindings checks that health reports that the log is not signed, and why (EN-09). Entries
// must be shown as not proven.
func TestAuditFindings(t *testing.T) {
	s := installed(t)
	at := s.Now()
	s.Now = func() time.Time { return at }
	by := s.As(admin.Actor{Role: admin.Auditor})
	finding := func(want, says string) {
		t.Helper()
		h, err := admin.HealthShow.Do(t.Context(), by, admin.None{})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range h.Findings {
			if f.Check == "audit" && f.Level == want && strings.Contains(f.What, says) {
				return
			}
		}
		t.Errorf("want %s: ...%s, got %+v", want, says, h.Findings)
	}
	proven := func(want string) {
		t.Helper()
		all, err := admin.AuditList.Do(t.Context(), by, admin.AuditWanted{})
		if err != nil || len(all.Items) != 3 {
			t.Fatalf("got %+v, %v", all, err)
		}
		one, err := admin.AuditShow.Do(t.Context(), by, admin.AuditIndex{Index: 1})
		if err != nil || one.Unproven != want || all.Items[0].Unproven != want {
			t.Errorf("got %q and %q, %v; want %q", one.Unproven, all.Items[0].Unproven, err, want)
		}
	}
	recorded(t, s, 3)
	finding(admin.LevelOK, "3 entries")
	proven(auditlog.UnprovenUnsigned)
	at = at.Add(3 * time.Minute)
	finding(admin.LevelWarning, "are not signed")
	if _, err := admin.AuditCheckpointNew.Do(t.Context(), by, admin.None{}); err != nil {
		t.Fatal(err)
	}
	finding(admin.LevelOK, "3 entries")
	proven("")
	store := unsigned{s.Store}
	s.Store = store
	s.AuditChecker = func(ctx context.Context) (*auditlog.Signer, error) {
		return auditlog.Open(ctx, store, [][]byte{make([]byte, 32)}, "", at)
	}
	finding(admin.LevelFail, "the checkpoint that says so is missing")
	proven(auditlog.UnprovenLog)
}
