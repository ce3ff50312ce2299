package auditlog

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/mcp-authd/mcp-authd/audit/verify"
	"github.com/mcp-authd/mcp-authd/storage"
)

// page is how much is read at once.
const page = 1024

// Report is what Verify has found in order.
type Report struct {
	Entries     int64 // that were ever appended
	Removed     int64 // the first of them, which are not kept any more; their hashes are
	Checkpoints int
	Confirmed   int64 // entries that a checkpoint confirms
	Root        verify.Hash
}

// ErrUnchecked means that the store or the key could not be read, so that nothing is said of the log.
var ErrUnchecked = errors.New("the audit log was not checked to its end")

// Verify reads the whole log, and compares its entries with their hashes, these with the checkpoints in
// the store, and with kept ones (OB-04). *verify.Wrong says where it is wrong; ErrUnchecked, wrapped, that it
// could not be read. Servers may append, sign and remove meanwhile. key gives the key of the log, "" when
// nothing was signed yet.
func Verify(
	ctx context.Context, store Store, key func(context.Context) (string, error), kept ...[]byte,
) (Report, error) {
	store = marking{store}
	head, err := store.AuditHead(ctx, "")
	if err != nil {
		return Report{}, err
	}
	c := checker{ctx: ctx, store: store, key: key, head: head}
	n, err := c.checkpoints(kept)
	if err == nil {
		err = c.whole()
	}
	out := Report{Entries: c.head.Size, Removed: c.head.First, Checkpoints: n}
	if err != nil {
		return out, err
	}
	out.Confirmed, out.Root = c.log.Confirmed(), c.log.Root()
	return out, c.beyond()
}

// marking is a store whose errors say that it could not be read: they are no fault of the log.
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

// checker is one Verify.
type checker struct {
	ctx    context.Context
	store  Store
	key    func(context.Context) (string, error)
	log    *verify.Log // nil until a first page of checkpoints was read
	head   storage.AuditHead
	tiles  *tileChecker
	ahead  []storage.AuditEntry // read and not checked
	hashes []byte               // of the tile that is being read
}

// checkpoints has the log agree with each checkpoint of the store up to the head, and with the kept ones.
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

// open asks for the key. That is after checkpoints were read: a server may make the key, and sign the first one,
// in the moment before.
func (c *checker) open() error {
	if c.log != nil {
		return nil
	}
	key, err := c.key(c.ctx)
	if err != nil {
		return unchecked(err)
	}
	c.log = verify.NewLog(key)
	return nil
}

func (c *checker) checkpoint(p storage.AuditCheckpoint) error {
	if p.Size > c.head.Size {
		// Written after the head was read, or the log was cut off: the head as it is now tells.
		now, err := c.store.AuditHead(c.ctx, "")
		if err != nil || p.Size <= now.Size {
			return err
		}
	}
	opened, err := verify.OpenCheckpoint(p.Signed, c.log.Key())
	if err == nil && opened.Size != p.Size {
		err = fmt.Errorf("it is of %d entries", opened.Size)
	}
	if err != nil {
		return fmt.Errorf("the checkpoint of %d entries was not signed by the key of the log: %w", p.Size, err)
	}
	return c.log.Checkpoint(p.Signed)
}

// whole compares entries and hashes, up to the end.
func (c *checker) whole() error {
	if err := c.entries(); err != nil {
		return err
	}
	if err := c.log.Done(); err != nil {
		return err
	}
	return c.tiles.finish()
}

// entries reads each entry, or what is left of it.
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
			err = c.tiles.add(kept)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// read has an entry be the next one of those that were read, or the head say that it was removed by its age: that
// may have been since the head was read. Then the log goes on to where it ends now, since the entry that says so
// may be one of the last.
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

// kept is the hash that was kept of an entry.
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
	if h == (verify.Hash{}) { // which would be none to compare with
		return h, &verify.Wrong{First: index, Last: index, Why: "its hash is missing"}
	}
	return h, nil
}

// entry takes the entry that read has found.
func (c *checker) entry(index int64, kept verify.Hash) error {
	e := c.ahead[0]
	c.ahead = c.ahead[1:]
	if err := c.log.Entry(index, e.Leaf, kept); err != nil {
		return err
	}
	parsed, err := verify.ParseEntry(e.Leaf)
	if err != nil {
		return err // the log has read it before
	}
	if want := record(parsed); want.Event != e.Event || want.Grant != e.Grant || want.Person != e.Person ||
		!want.At.Equal(e.At) {
		return &verify.Wrong{First: index, Last: index, Why: "what is kept beside it to find it is not what it says"}
	}
	return nil
}

// beyond looks for what stands after the end: the head may have been put back.
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
		Why: fmt.Sprintf("the log says that it ends after %d entries", now.Size),
	}
}

// tileChecker compares the tiles above the leaves, from which proofs are made, with the leaves.
type tileChecker struct {
	ctx    context.Context
	store  Store
	levels []tileLevel
}

// tileLevel is the tile of a level that is being filled.
type tileLevel struct {
	number int64
	hashes []byte
}

func (t *tileChecker) add(h verify.Hash) error { return t.put(0, h) }

func (t *tileChecker) put(level int, h verify.Hash) error {
	if level == len(t.levels) {
		t.levels = append(t.levels, tileLevel{})
	}
	l := &t.levels[level]
	l.hashes = append(l.hashes, h[:]...)
	if len(l.hashes) < tileWidth*tlog.HashSize {
		return nil
	}
	if err := t.compare(level); err != nil {
		return err
	}
	root := subtree(l.hashes)
	l.number, l.hashes = l.number+1, nil
	return t.put(level+1, root)
}

// compare has the hashes of a level be those of the store. Leaves were compared one by one.
func (t *tileChecker) compare(level int) error {
	l := t.levels[level]
	if level == 0 || len(l.hashes) == 0 {
		return nil
	}
	found, err := t.store.AuditTiles(t.ctx, level, l.number, 1)
	if err != nil {
		return err
	}
	if len(found) == 1 && found[0].Number == l.number && len(found[0].Hashes) >= len(l.hashes) &&
		string(found[0].Hashes[:len(l.hashes)]) == string(l.hashes) {
		return nil
	}
	wide := int64(1) << (height * level) // leaves below each hash
	first := l.number * tileWidth * wide
	return &verify.Wrong{
		First: first, Last: first + int64(len(l.hashes)/tlog.HashSize)*wide - 1,
		Why: "the hashes of the tree above them were changed",
	}
}

// finish compares the tiles that are not full.
func (t *tileChecker) finish() error {
	var all []error
	for level := range t.levels {
		all = append(all, t.compare(level))
	}
	return errors.Join(all...)
}

// subtree is the root of a full tile.
func subtree(hashes []byte) verify.Hash {
	var level []verify.Hash
	for ; len(hashes) > 0; hashes = hashes[tlog.HashSize:] {
		level = append(level, verify.Hash(hashes[:tlog.HashSize]))
	}
	for len(level) > 1 {
		for i := range len(level) / 2 {
			level[i] = tlog.NodeHash(level[2*i], level[2*i+1])
		}
		level = level[:len(level)/2]
	}
	return level[0]
}
