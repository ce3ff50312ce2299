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

// Retention removes old entries, but not their hashes, so that proofs of other entries stay valid.
type Retention struct {
	Store  Store
	Signer *Signer
	Audit  *audit.Recorder // passes events to a Writer of the log
	Keep   time.Duration
}

const (
	// removeWindow limits how many entries a step reads or removes.
	removeWindow = 10_000
	// removeDay is the unit of removal, so that the log announces removals once a day at most.
	removeDay = 24 * time.Hour
)

// Remove removes entries older than Keep. First it announces the removal in an entry, signed with
// the key of the log, and covers it with a checkpoint, so that an attacker with only the database
// cannot disguise a deletion as a removal by age (OB-04).
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

// old returns the index of the first entry that is not older than before.
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

// announce writes the entry unless an earlier one covers the removal, because a removal was
// interrupted or another replica is removing.
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
