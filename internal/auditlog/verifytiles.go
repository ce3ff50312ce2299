package auditlog

import (
	"context"
	"errors"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/mcp-authd/mcp-authd/audit/verify"
)

// tileChecker compares the tiles above the leaves, which proofs are made from, with the leaves.
type tileChecker struct {
	ctx    context.Context
	store  Store
	levels []tileLevel
}

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

// compare compares the hashes of a level with the store. Leaves are compared elsewhere, one by one.
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

func (t *tileChecker) finish() error {
	var all []error
	for level := range t.levels {
		all = append(all, t.compare(level))
	}
	return errors.Join(all...)
}

// subtree returns the root of a full tile.
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
