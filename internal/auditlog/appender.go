package auditlog

import (
	"context"
	"errors"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// numbered is an entry with its number among all entries of its writer, starting at 0.
type numbered struct {
	number int64
	storage.AuditEntry
}

// appender appends the entries of one writer exactly once. The store records the progress of the
// writer.
type appender struct {
	store storage.AuditLog
	now   func() time.Time
	id    string // of the writer in the store
	base  int64  // number of the first entry under this id
	mark  int64  // entries with lower numbers are in the log
	edge  *edge  // nil if unknown
	open  func(context.Context) (*MAC, error)
	mac   *MAC // nil until opened
	chain chain
}

// chain identifies the next entry of the writer for its MAC.
type chain struct {
	id   string
	next int64
	used time.Time
}

// of returns the chain for the next entries. It begins a new one if it is unclear how much of the
// current one is in the log, or if the signer may have forgotten it.
func (c chain) of(now time.Time) chain {
	if c.id == "" || now.Sub(c.used) > chainIdle || now.Before(c.used) {
		return chain{id: secrets.IDAt("awr_", now)}
	}
	return c
}

func newWriterID() string { return secrets.ID("awr_") }

// errThere means that the batch may be in the log already, errPutBack that the log has lost entries
// of the writer.
var (
	errThere   = errors.New("auditlog: the batch may be in the log")
	errPutBack = errors.New("auditlog: the log has lost entries of the writer")
)

// append appends a batch or a part of it; entries below a.mark are in the log. After a lost
// response, the next call learns from the store whether the batch arrived (OB-04).
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
		// The lost entries are no longer in memory. The next ones get a new writer id.
		a.id, a.base = newWriterID(), a.mark
		err = a.try(ctx, batch)
	}
	if errors.Is(err, errThere) {
		return nil
	}
	return err
}

// try appends a batch, unless the log has more or fewer entries of the writer than expected.
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
