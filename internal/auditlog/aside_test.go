package auditlog_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mcp-authd/mcp-authd/audit/verify"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/auditlog"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

type outage struct {
	auditlog.Store
	away atomic.Bool
}

func (o *outage) AppendAudit(
	ctx context.Context, writer string, known int64, build func(storage.AuditEnd) (storage.AuditAppend, error),
) error {
	if o.away.Load() {
		return errors.New("away")
	}
	return o.Store.AppendAudit(ctx, writer, known, build)
}

// TestSetAside: OP-01. While the store is away, entries wait in files, and then reach the log.
func TestSetAside(t *testing.T) {
	const n = auditlog.AsideAt + 100
	db, dir := onSQLite(t), t.TempDir()
	store := &outage{Store: db}
	store.away.Store(true)
	w, log := spooling(store, dir)
	ctx, cancel := context.WithCancel(t.Context())
	var run sync.WaitGroup
	run.Go(func() { w.Run(ctx) })
	awaited, first := audit.Awaited(t.Context())
	w.Add(awaited, audit.UserChanged, nil)
	add(t, w, 0, n)
	wait.Until(t, "memory has room again", func() bool { waiting, _ := w.State(); return waiting < auditlog.AsideAt })
	if files, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(files) == 0 {
		t.Errorf("files: %v, %v", files, err)
	}
	if err := first.Wait(t.Context()); err == nil {
		t.Error("an entry is confirmed that waits in a file")
	}
	store.away.Store(false)
	wait.Until(t, "all entries are in the log", func() bool { return db.size(t) == n+1 && empty(t, dir) })
	cancel()
	run.Wait()
	if left, lost := w.State(); left != 0 || lost != 0 {
		t.Errorf("%d wait, %d are lost", left, lost)
	}
	sign := signer(t, db)
	checkpoint(t, sign)
	if report, err := auditlog.Verify(t.Context(), db, keyOf(sign)); err != nil || report.Confirmed != n+1 {
		t.Errorf("got %+v, %v", report, err)
	}
	if !strings.Contains(log.String(), "wait in a file until the store takes them") {
		t.Error("the server's log does not name the files")
	}
}

// TestLostIsTold: OP-01. Without a directory, entries beyond the memory limit are lost, and the log
// says how many.
func TestLostIsTold(t *testing.T) {
	db := onSQLite(t)
	store := &outage{Store: db}
	store.away.Store(true)
	w, _ := spooling(store, "")
	add(t, w, 0, auditlog.MaxWaiting+7)
	store.away.Store(false)
	runFor(t, w, func() bool { return db.size(t) == auditlog.MaxWaiting+1 })
	told, err := db.AuditEntries(t.Context(), storage.AuditQuery{Event: audit.AuditLost, Limit: 9})
	must(t, err)
	if len(told) != 1 {
		t.Fatalf("%d entries tell of a loss, want 1", len(told))
	}
	if e, err := verify.ParseEntry(told[0].Leaf); err != nil || e.Fields["entries"] != "7" || e.Fields["since"] == "" {
		t.Errorf("got %+v, %v", e, err)
	}
}
