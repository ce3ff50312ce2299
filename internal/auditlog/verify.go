package auditlog

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/mcp-authd/mcp-authd/audit/verify"
	"github.com/mcp-authd/mcp-authd/internal/label"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// page is the number of entries or checkpoints per read.
const page = 1024

// Report is the result of Verify.
type Report struct {
	Entries     int64 // ever appended
	Removed     int64 // entries that were removed, except for their hashes
	Checkpoints int
	Confirmed   int64 // entries confirmed by a checkpoint
	Sealed      int64 // entries with a verified MAC
	Root        verify.Hash
}

// ErrUnchecked means that the store or the key could not be read. The log may be correct.
var ErrUnchecked = errors.New("the audit log was not checked to its end")

// Verify reads the whole log. It compares the entries with their hashes, and these with the stored
// and the kept checkpoints (OB-04). It checks the MACs, and that the log begins with the part that
// its seal records as signed (EN-09). A *verify.Wrong locates a fault; ErrUnchecked, wrapped, means
// that the log could not be read. Servers may append, sign and remove meanwhile. open returns the
// key and the seal.
func Verify(
	ctx context.Context, store Store, open func(context.Context) (Keys, error), kept ...[]byte,
) (Report, error) {
	store = marking{store}
	c := checker{ctx: ctx, store: store, keys: open}
	if err := c.seal(); err != nil {
		return Report{}, err
	}
	var err error
	if c.head, err = store.AuditHead(ctx, ""); err != nil {
		return Report{}, err
	}
	n, err := c.checkpoints(kept)
	if err == nil {
		err = c.whole()
	}
	if err == nil {
		err = c.signedFar()
	}
	out := Report{Entries: c.head.Size, Removed: c.head.First, Checkpoints: n, Sealed: c.sealed}
	if err != nil {
		return out, err
	}
	out.Confirmed, out.Root = c.log.Confirmed(), c.log.Root()
	return out, c.beyond()
}

// marking is a store that marks its errors with ErrUnchecked.
type marking struct{ Store }

func unchecked(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrUnchecked, err)
}

func (m marking) AuditHead(ctx context.Context, writer string) (storage.AuditHead, error) {
	head, err := m.Store.AuditHead(ctx, writer)
	return head, unchecked(err)
}

func (m marking) AuditEntries(ctx context.Context, q storage.AuditQuery) ([]storage.AuditEntry, error) {
	found, err := m.Store.AuditEntries(ctx, q)
	return found, unchecked(err)
}

func (m marking) AuditTiles(ctx context.Context, level int, from int64, limit int) ([]storage.AuditTile, error) {
	found, err := m.Store.AuditTiles(ctx, level, from, limit)
	return found, unchecked(err)
}

func (m marking) Checkpoints(ctx context.Context, after int64, limit int) ([]storage.AuditCheckpoint, error) {
	found, err := m.Store.Checkpoints(ctx, after, limit)
	return found, unchecked(err)
}

type checker struct {
	ctx    context.Context
	store  Store
	keys   func(context.Context) (Keys, error)
	log    *verify.Log // nil until the first page of checkpoints was read
	held   *seal       // nil while the log has no seal
	chains extent      // of the entries so far
	sealed int64
	newest int64 // size of the newest checkpoint
	head   storage.AuditHead
	tiles  *tileChecker
	ahead  []storage.AuditEntry // read, but not checked
	hashes []byte               // of the current tile
}

// checkpoints adds the checkpoints in the store, and the kept ones, to the log.
func (c *checker) checkpoints(kept [][]byte) (n int, err error) {
	err = eachCheckpoint(c.ctx, c.store, func(p storage.AuditCheckpoint) error {
		n++
		if err := c.open(); err != nil {
			return err
		}
		return c.checkpoint(p)
	})
	if err == nil {
		err = c.open()
	}
	if err != nil {
		return n, err
	}
	for _, signed := range kept {
		if err := c.log.Checkpoint(signed); err != nil {
			return n, fmt.Errorf("the kept checkpoint: %w", err)
		}
	}
	return n, nil
}

// open gets the key after checkpoints were read, because a server may create both at any moment.
func (c *checker) open() error {
	if c.log != nil {
		return nil
	}
	with, err := c.keys(c.ctx)
	if err != nil {
		return unchecked(err)
	}
	c.log = verify.NewLog(with.Public)
	return nil
}

func (c *checker) checkpoint(p storage.AuditCheckpoint) error {
	c.newest = max(c.newest, p.Size)
	if p.Size > c.head.Size {
		// Either the checkpoint is newer than the head that was read, or the log was cut off.
		now, err := c.store.AuditHead(c.ctx, "")
		if err != nil || p.Size <= now.Size {
			return err
		}
	}
	opened, err := verify.OpenCheckpoint(p.Signed, c.log.Key())
	if err == nil && opened.Size != p.Size {
		err = fmt.Errorf("it is of %s", label.Count(opened.Size, "entry", "entries"))
	}
	if err != nil {
		return fmt.Errorf("the checkpoint of %s was not signed by the key of the log: %w",
			label.Count(p.Size, "entry", "entries"), err)
	}
	return c.log.Checkpoint(p.Signed)
}

func (c *checker) whole() error {
	if err := c.entries(); err != nil {
		return err
	}
	if err := c.log.Done(); err != nil {
		return err
	}
	return c.tiles.finish()
}

// entries checks each entry, or the hash of a removed entry.
func (c *checker) entries() error {
	c.tiles = &tileChecker{ctx: c.ctx, store: c.store}
	for index := int64(0); index < c.head.Size; index++ {
		kept, err := c.kept(index)
		if err != nil {
			return err
		}
		if index >= c.head.First {
			if err := c.read(index); err != nil {
				return err
			}
		}
		if index < c.head.First {
			err = c.log.Removed(index, kept)
		} else {
			err = c.entry(index, kept)
		}
		if err == nil {
			err = c.agrees()
		}
		if err == nil {
			err = c.tiles.add(kept)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// read makes the entry at an index the first of c.ahead. If retention has removed it meanwhile,
// read extends the check to the current end, where the announcement may be.
func (c *checker) read(index int64) error {
	if len(c.ahead) == 0 {
		var err error
		c.ahead, err = c.store.AuditEntries(c.ctx, storage.AuditQuery{From: index, Below: c.head.Size, Limit: page})
		if err != nil {
			return err
		}
	}
	if len(c.ahead) > 0 && c.ahead[0].Index == index {
		return nil
	}
	now, err := c.store.AuditHead(c.ctx, "")
	if err != nil {
		return err
	}
	if index >= now.First || now.Size < c.head.Size {
		return &verify.Wrong{First: index, Last: index, Why: "it was removed"}
	}
	c.head, c.ahead = now, nil
	return nil
}

// kept returns the stored hash of an entry.
func (c *checker) kept(index int64) (h verify.Hash, err error) {
	at := int(index%tileWidth) * tlog.HashSize
	if at == 0 || at+tlog.HashSize > len(c.hashes) { // the log may have grown since
		found, err := c.store.AuditTiles(c.ctx, 0, index/tileWidth, 1)
		if err != nil {
			return h, err
		}
		c.hashes = nil
		if len(found) > 0 && found[0].Number == index/tileWidth {
			c.hashes = found[0].Hashes
		}
	}
	if at+tlog.HashSize > len(c.hashes) {
		return h, &verify.Wrong{First: index, Last: index, Why: "its hash is missing"}
	}
	h = verify.Hash(c.hashes[at : at+tlog.HashSize])
	if h == (verify.Hash{}) { // a zero hash would not be compared
		return h, &verify.Wrong{First: index, Last: index, Why: "its hash is missing"}
	}
	return h, nil
}

// entry checks the first entry of c.ahead.
func (c *checker) entry(index int64, hash verify.Hash) error {
	e := c.ahead[0]
	c.ahead = c.ahead[1:]
	if err := c.log.Entry(index, e.Leaf, hash); err != nil {
		return err
	}
	parsed, err := verify.ParseEntry(e.Leaf)
	if err != nil {
		return err // log.Entry has parsed it before
	}
	if want := record(parsed); want.Event != e.Event || want.Grant != e.Grant || want.Person != e.Person ||
		!want.At.Equal(e.At) {
		return &verify.Wrong{First: index, Last: index, Why: "what is kept beside it to find it is not what it says"}
	}
	return c.writer(index, e.Leaf)
}

// beyond checks that no entries follow the end: the head may have been set back.
func (c *checker) beyond() error {
	more, err := c.store.AuditEntries(c.ctx, storage.AuditQuery{From: c.head.Size, Limit: 1})
	if err != nil || len(more) == 0 {
		return err
	}
	now, err := c.store.AuditHead(c.ctx, "")
	if err != nil || more[0].Index < now.Size {
		return err
	}
	return &verify.Wrong{
		First: more[0].Index, Last: more[0].Index,
		Why: fmt.Sprintf("the log says that it ends after %s", label.Count(now.Size, "entry", "entries")),
	}
}
