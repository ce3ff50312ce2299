package auditlog

import (
	"context"
	"errors"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/storage"
)

// numbered is an entry with its place among all of its writer, from 0 on.
type numbered struct {
	number int64
	storage.AuditEntry
}

// appender appends the entries of one writer, each once: the store keeps how far the writer has come.
type appender struct {
	store storage.AuditLog
	now   func() time.Time
	id    string // of the writer at the store
	base  int64  // the number of the first entry under this id
	mark  int64  // the entries with lower numbers are in the log
	edge  *edge  // nil: unknown
}

func newWriterID() string { return secrets.ID("awr_") }

// append appends a batch, and returns when some of it is in the log: those below a.mark. When an answer
// of the store was lost, its mark tells whether the batch is there.
func (a *appender) append(ctx context.Context, batch []numbered) (err error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	for range contended {
		if a.edge == nil {
			head, err := a.store.AuditHead(ctx, a.id)
			if err != nil {
				return err
			}
			if a.found(head) {
				return nil
			}
			if a.edge, err = readEdge(ctx, a.store, head.Size); err != nil {
				return err
			}
		}
		err = a.try(ctx, batch)
		if err == nil {
			return nil
		}
		a.edge = nil
		if !errors.Is(err, storage.ErrChanged) && !errors.Is(err, storage.ErrExists) {
			return err
		}
	}
	return err
}

// found reports whether more is in the log than was known. A store that was put back to an earlier state
// knows of less; what it has lost is no longer here, and what follows goes on under another id.
func (a *appender) found(head storage.AuditHead) bool {
	mark := a.base + head.Mark
	if mark > a.mark {
		a.mark = mark
		return true
	}
	if mark < a.mark {
		a.id, a.base = newWriterID(), a.mark
	}
	return false
}

// try appends a batch at the edge that is known (OB-04).
func (a *appender) try(ctx context.Context, batch []numbered) error {
	entries := make([]storage.AuditEntry, len(batch))
	leaves := make([]tlog.Hash, len(batch))
	for i, e := range batch {
		e.Index = a.edge.size + int64(i)
		entries[i], leaves[i] = e.AuditEntry, tlog.RecordHash(e.Leaf)
	}
	grown, tiles := a.edge.grow(leaves)
	to := batch[len(batch)-1].number + 1
	err := a.store.AppendAudit(ctx, storage.AuditAppend{
		Size: a.edge.size, Writer: a.id, From: a.mark - a.base, To: to - a.base, Entries: entries, Tiles: tiles,
		Now: a.now(),
	})
	if err != nil {
		return err
	}
	a.edge, a.mark = grown, to
	return nil
}
