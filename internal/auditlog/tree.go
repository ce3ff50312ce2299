package auditlog

import (
	"context"
	"errors"
	"maps"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// height is the height of a tile, which has 2^8 hashes.
const (
	height    = 8
	tileWidth = 1 << height
)

var errTiles = errors.New("the audit log has lost hashes of its tree: run: mcp-authd audit verify")

type tileKey struct {
	level  int
	number int64
}

// edge contains the incomplete tiles at the right end of the tree.
type edge struct {
	size  int64
	tiles map[tileKey][]byte
}

// known returns the size of the log, or -1 if the edge is unknown.
func (e *edge) known() int64 {
	if e == nil {
		return -1
	}
	return e.size
}

// edgeOf returns the edge at the end of a log.
func edgeOf(end storage.AuditEnd) (*edge, error) {
	e := &edge{size: end.Size, tiles: map[tileKey][]byte{}}
	for _, t := range end.Tiles {
		e.tiles[tileKey{t.Level, t.Number}] = t.Hashes
	}
	for level := 0; end.Size>>(height*level) > 0; level++ {
		at := tileKey{level, end.Size >> (height * (level + 1))}
		width := int(end.Size>>(height*level)) & (tileWidth - 1)
		switch {
		case width == 0:
			delete(e.tiles, at)
		case len(e.tiles[at]) < width*tlog.HashSize:
			return nil, errTiles
		default:
			e.tiles[at] = e.tiles[at][:width*tlog.HashSize]
		}
	}
	return e, nil
}

// grow returns the edge with more leaves, and the changed tiles. The inner hashes of a tile are not
// stored, so they are computed only once it is full.
func (e *edge) grow(leaves []tlog.Hash) (*edge, []storage.AuditTile) {
	grown := &edge{size: e.size + int64(len(leaves)), tiles: maps.Clone(e.tiles)}
	var tiles []storage.AuditTile
	for level, hashes := 0, leaves; len(hashes) > 0; level++ {
		at := tileKey{level, e.size >> (height * (level + 1))}
		var above []tlog.Hash
		for len(hashes) > 0 {
			room := tileWidth - len(e.tiles[at])/tlog.HashSize
			data := appendHashes(e.tiles[at], hashes[:min(room, len(hashes))])
			hashes = hashes[min(room, len(hashes)):]
			tiles = append(tiles, storage.AuditTile{Level: at.level, Number: at.number, Hashes: data})
			if len(data) < tileWidth*tlog.HashSize {
				grown.tiles[at] = data
				break
			}
			delete(grown.tiles, at)
			above = append(above, tileRoot(data))
			at.number++
		}
		hashes = above
	}
	return grown, tiles
}

// appendHashes returns a copy of a tile with further hashes.
func appendHashes(tile []byte, hashes []tlog.Hash) []byte {
	out := append(make([]byte, 0, len(tile)+len(hashes)*tlog.HashSize), tile...)
	for _, h := range hashes {
		out = append(out, h[:]...)
	}
	return out
}

// tileRoot returns the root of a full tile.
func tileRoot(tile []byte) tlog.Hash {
	var hashes [tileWidth]tlog.Hash
	for i := range hashes {
		copy(hashes[i][:], tile[i*tlog.HashSize:])
	}
	for n := tileWidth / 2; n > 0; n /= 2 {
		for i := range n {
			hashes[i] = tlog.NodeHash(hashes[2*i], hashes[2*i+1])
		}
	}
	return hashes[0]
}

// stored reads hashes for one root or proof from the store. It does not verify them.
type stored struct {
	ctx    context.Context
	store  storage.AuditLog
	tiles  map[tileKey][]byte
	failed error // error of the store, which says nothing about the tree
}

func readStored(ctx context.Context, store storage.AuditLog) *stored {
	return &stored{ctx: ctx, store: store, tiles: map[tileKey][]byte{}}
}

// ReadHashes implements tlog.HashReader.
func (s *stored) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	out := make([]tlog.Hash, len(indexes))
	for i, index := range indexes {
		t := tlog.TileForIndex(height, index)
		data, err := s.tile(tileKey{t.L, t.N})
		if err != nil {
			return nil, err
		}
		if len(data) < t.W*tlog.HashSize {
			return nil, errTiles
		}
		if out[i], err = tlog.HashFromTile(t, data[:t.W*tlog.HashSize], index); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (s *stored) tile(at tileKey) ([]byte, error) {
	if data, known := s.tiles[at]; known {
		return data, nil
	}
	found, err := s.store.AuditTiles(s.ctx, at.level, at.number, 1)
	if err != nil {
		s.failed = err
		return nil, err
	}
	if len(found) == 0 || found[0].Number != at.number {
		return nil, errTiles
	}
	s.tiles[at] = found[0].Hashes
	return found[0].Hashes, nil
}
