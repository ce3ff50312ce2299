package auditlog_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/audit/verify"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/auditlog"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

// removing removes old entries as a server with its clock at now.
func removing(
	t *testing.T, db database, sign *auditlog.Signer, keep time.Duration, now time.Time,
) (removed int64, err error) {
	t.Helper()
	w := auditlog.NewWriter(auditlog.Options{
		Store: db, Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler),
		MAC: macOf(db),
	})
	ctx, cancel := context.WithCancel(t.Context())
	var run sync.WaitGroup
	run.Go(func() { w.Run(ctx) })
	defer run.Wait()
	defer cancel()
	return auditlog.Retention{
		Store: db, Signer: sign, Audit: audit.New(slog.New(slog.DiscardHandler)).Into(w), Keep: keep,
	}.Remove(ctx, now)
}

// aged fills a log with ten entries a day for a number of days, up to now.
func aged(t *testing.T, db database, days int, now time.Time) {
	t.Helper()
	for day := days - 1; day >= 0; day-- {
		w := writer(db)
		for i := range 10 {
			w.Add(t.Context(), audit.TokenIssued, []slog.Attr{
				slog.Time("at", now.Add(-time.Duration(day)*24*time.Hour)),
				slog.String("grant", fmt.Sprint("grt_", i)),
			})
		}
		drain(t, w)
	}
}

// TestRetention: OB-04. Old entries are removed after an entry announces it. The rest stays
// provable, and any other removal is detected.
func TestRetention(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	onBoth(t, func(t *testing.T, db database) {
		sign := signer(t, db)
		aged(t, db, 10, now)
		early := checkpointAt(t, sign, now)
		check := func(t *testing.T) (auditlog.Report, error) {
			return auditlog.Verify(t.Context(), db, keyOf(sign), early.Signed)
		}
		for i, want := range []int64{50, 0} { // days 9 to 5; nothing the second time
			removed, err := removing(t, db, sign, 4*24*time.Hour, now)
			if err != nil || removed != want {
				t.Fatalf("time %d: got %d, %v", i, removed, err)
			}
		}
		report, err := check(t)
		if err != nil || report.Removed != 50 || report.Entries != 101 || report.Confirmed != 101 {
			t.Errorf("got %+v, %v", report, err)
		}
		said, err := db.AuditEntries(t.Context(), storage.AuditQuery{Event: audit.AuditRemoved, Limit: 9})
		if err != nil || len(said) != 1 || said[0].Index != 100 {
			t.Errorf("got %v, %v", said, err)
		}
		left, err := db.AuditEntries(t.Context(), storage.AuditQuery{Grant: "grt_3", Limit: 1})
		must(t, err)
		proof, err := auditlog.Prove(t.Context(), db, sign, left[0], now)
		must(t, err)
		if _, err := proof.Open(sign.Key()); err != nil || left[0].Index != 53 {
			t.Errorf("entry %d: %v", left[0].Index, err)
		}
		forged := verify.Entry{At: now, Event: audit.AuditRemoved, Fields: map[string]string{
			"below": "60", "statement": strings.Replace(statement(t, said[0]), "below 50", "below 60", 1),
		}}
		for _, c := range []struct {
			name, attack string
			forge        bool
			first        int64
			says         string
		}{
			{
				"more is missing than was said",
				"DELETE FROM audit_entries WHERE idx < 55; UPDATE audit_head SET first_idx = 55", false, 50,
				"no entry says that they were to be",
			},
			{"the entry that says so is gone", "DELETE FROM audit_entries WHERE idx = 100", false, 100, "it was removed"},
			{
				"an entry says more, and the key has not",
				"DELETE FROM audit_entries WHERE idx < 60; UPDATE audit_head SET first_idx = 60", true, 101,
				"has not signed that",
			},
			{
				"entries are missing that are said to be there", "UPDATE audit_head SET first_idx = 0", false, 0,
				"it was removed",
			},
		} {
			t.Run(c.name, func(t *testing.T) {
				tables := []string{"audit_entries", "audit_head", "audit_tiles", "audit_checkpoints", "audit_writers"}
				for _, copied := range tables {
					db.exec(t, "CREATE TABLE kept_"+copied+" AS SELECT * FROM "+copied)
					defer func() {
						db.exec(t, "DELETE FROM "+copied+"; INSERT INTO "+copied+" SELECT * FROM kept_"+copied+
							"; DROP TABLE kept_"+copied)
					}()
				}
				if c.forge {
					w := writer(db)
					w.Add(t.Context(), forged.Event, []slog.Attr{
						slog.String("below", forged.Fields["below"]),
						slog.String("statement", forged.Fields["statement"]),
					})
					drain(t, w)
				}
				db.exec(t, c.attack)
				_, err := check(t)
				var wrong *verify.Wrong
				if !errors.As(err, &wrong) || wrong.First != c.first || !strings.Contains(err.Error(), c.says) {
					t.Errorf("got %v, want entry %d: ...%s", err, c.first, c.says)
				}
			})
		}
		if _, err := check(t); err != nil {
			t.Errorf("after all was undone: %v", err)
		}
		// A day later, the entries of one more day are removed.
		removed, err := removing(t, db, sign, 4*24*time.Hour, now.Add(24*time.Hour))
		if report, wrong := check(t); err != nil || removed != 10 || wrong != nil || report.Removed != 60 {
			t.Errorf("a day later: got %d, %v, %+v, %v", removed, err, report, wrong)
		}
	})
}

func statement(t *testing.T, e storage.AuditEntry) string {
	t.Helper()
	entry, err := verify.ParseEntry(e.Leaf)
	must(t, err)
	return entry.Fields["statement"]
}

// TestRemovalIsWritten: OB-04. No entry is removed until the announcement is in the log.
func TestRemovalIsWritten(t *testing.T) {
	db := onSQLite(t)
	now := time.Now()
	aged(t, db, 5, now)
	ctx, end := context.WithCancel(t.Context())
	idle, ended := writer(db), make(chan error, 1) // never run
	retention, removed := auditlog.Retention{
		Store: db, Signer: signer(t, db), Keep: 24 * time.Hour,
		Audit: audit.New(slog.New(slog.DiscardHandler)).Into(idle),
	}, int64(0)
	go func() {
		var err error
		removed, err = retention.Remove(ctx, now)
		ended <- err
	}()
	wait.Until(t, "the entry waits for the log", func() bool { n, _ := idle.State(); return n == 1 })
	end()
	err := <-ended
	head, _ := db.AuditHead(t.Context(), "")
	if !errors.Is(err, context.Canceled) || removed != 0 || head.First != 0 {
		t.Errorf("got %d, %v, %+v", removed, err, head)
	}
}
