package auditlog

import (
	"context"
	"errors"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
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
	open  func(context.Context) (*MAC, error)
	mac   *MAC // nil: not opened yet
	chain chain
}

// chain is what the entries are sealed as that are appended next.
type chain struct {
	id   string
	next int64
	used time.Time
}

// of returns the chain to go on with. A new one begins when it is not certain what of the one before is in the log,
// and when the signer may have forgotten it.
func (c chain) of(now time.Time) chain {
	if c.id == "" || now.Sub(c.used) > chainIdle || now.Before(c.used) {
		return chain{id: secrets.IDAt("awr_", now)}
	}
	return c
}

func newWriterID() string { return secrets.ID("awr_") }

// errThere stops an append of what may be in the log already, errPutBack one to a log that has lost entries.
var (
	errThere   = errors.New("auditlog: the batch may be in the log")
	errPutBack = errors.New("auditlog: the log has lost entries of the writer")
)

// append appends a batch, and returns when some of it is in the log: those below a.mark. When an answer
// of the store was lost, its mark tells whether the batch is there (OB-04).
func (a *appender) append(ctx context.Context, batch []numbered) (err error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	if a.mac == nil {
		if a.mac, err = a.open(ctx); err != nil {
			return err
		}
	}
	err = a.try(ctx, batch)
	if errors.Is(err, errPutBack) {
		// What the store has lost is no longer here. What follows goes on under another id.
		a.id, a.base = newWriterID(), a.mark
		err = a.try(ctx, batch)
	}
	if errors.Is(err, errThere) {
		return nil
	}
	return err
}

// try appends a batch to the end of the log, unless the log has more or less of the writer than is known.
func (a *appender) try(ctx context.Context, batch []numbered) error {
	to, mark := batch[len(batch)-1].number+1, a.mark
	var grown *edge
	var sealed chain
	build := func(end storage.AuditEnd) (out storage.AuditAppend, err error) {
		switch mark = a.base + end.Mark; {
		case mark > a.mark:
			return out, errThere
		case mark < a.mark:
			return out, errPutBack
		}
		at := a.edge
		if at.known() != end.Size {
			if at, err = edgeOf(end); err != nil {
				return out, err
			}
		}
		out = storage.AuditAppend{Mark: to - a.base, Entries: make([]storage.AuditEntry, len(batch)), Now: a.now()}
		sealed = a.chain.of(out.Now)
		leaves := make([]tlog.Hash, len(batch))
		for i, e := range batch {
			e.Index = end.Size + int64(i)
			e.Leaf = a.mac.Seal(e.Leaf, Link{sealed.id, sealed.next + int64(i)})
			out.Entries[i], leaves[i] = e.AuditEntry, tlog.RecordHash(e.Leaf)
		}
		grown, out.Tiles = at.grow(leaves)
		return out, nil
	}
	if err := a.store.AppendAudit(ctx, a.id, a.edge.known(), build); err != nil {
		a.edge, a.chain = nil, chain{} // the batch may be in the log
		a.mark = max(a.mark, mark)
		return err
	}
	a.edge, a.mark = grown, to
	a.chain = chain{sealed.id, sealed.next + int64(len(batch)), a.now()}
	return nil
}
