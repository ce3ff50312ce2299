package auditlog

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/mcp-authd/mcp-authd/audit/verify"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// Retention removes old entries, and keeps their hashes, so that proofs of the others stay as they are.
type Retention struct {
	Store  Store
	Signer *Signer
	Audit  *audit.Recorder // that a Writer of the log is attached to
	Keep   time.Duration
}

const (
	// removeWindow is how many entries are looked at, or removed, at once.
	removeWindow = 10_000
	// removeDay is what removals are rounded to: one entry a day tells of them.
	removeDay = 24 * time.Hour
)

// Remove removes the entries that are older than Keep. It first writes an entry that says so, signed by the
// key of the log, and has a checkpoint confirm it, so that an attacker who has the database cannot pass off
// what they remove as old (OB-04).
func (r Retention) Remove(ctx context.Context, now time.Time) (removed int64, err error) {
	head, err := r.Store.AuditHead(ctx, "")
	if err != nil {
		return 0, err
	}
	below, err := r.old(ctx, head, now.Add(-r.Keep).Truncate(removeDay))
	if err != nil || below <= head.First {
		return 0, err
	}
	if err := r.announce(ctx, below); err != nil {
		return 0, err
	}
	if _, err := r.Signer.Checkpoint(ctx, now); err != nil {
		return 0, err
	}
	for first := head.First; first < below; {
		next, err := r.Store.RemoveAudit(ctx, below, removeWindow)
		if err != nil {
			return first - head.First, err
		}
		if next == first {
			return first - head.First, fmt.Errorf("the entries from %d on cannot be removed", first)
		}
		first = next
	}
	return below - head.First, nil
}

// old is the index of the first entry that is not older than a time.
func (r Retention) old(ctx context.Context, head storage.AuditHead, before time.Time) (int64, error) {
	for at := head.First; at < head.Size; at += removeWindow {
		found, err := r.Store.AuditEntries(ctx, storage.AuditQuery{
			From: at, Below: min(at+removeWindow, head.Size), Since: before, Limit: 1,
		})
		if err != nil {
			return 0, err
		}
		if len(found) > 0 {
			return found[0].Index, nil
		}
	}
	return head.Size, nil
}

// announce writes the entry, unless one says as much already: a removal may have been interrupted, or
// another replica be at it.
func (r Retention) announce(ctx context.Context, below int64) error {
	last, err := r.Store.AuditEntries(ctx, storage.AuditQuery{Event: verify.RemovedEvent, Last: true, Limit: 1})
	if err != nil {
		return err
	}
	if len(last) > 0 {
		e, err := verify.ParseEntry(last[0].Leaf)
		if err != nil {
			return err
		}
		if said, err := strconv.ParseInt(e.Fields["below"], 10, 64); err == nil && said >= below {
			return nil
		}
	}
	statement, err := r.Signer.Removal(below)
	if err != nil {
		return err
	}
	recorded, pending := audit.Awaited(ctx)
	r.Audit.Record(recorded, audit.AuditRemoved, slog.Int64("below", below), slog.String("statement", statement))
	return pending.Wait(ctx)
}
