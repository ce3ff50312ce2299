package auditlog

import (
	"context"
	"errors"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/mcp-authd/mcp-authd/storage"
)

// height is that of a tile: 2^8 hashes.
const (
	height    = 8
	tileWidth = 1 << height
)

var errTiles = errors.New("the audit log has lost hashes of its tree: run: mcp-authd audit verify")

// tileKey names a tile.
type tileKey struct {
	level  int
	number int64
}

// edge are the tiles at the right end of the tree, those that are not full.
type edge struct {
	size  int64
	tiles map[tileKey][]byte
	fresh map[int64]tlog.Hash // hashes that are in no tile yet
}

// readEdge reads the edge of a tree of some size.
func readEdge(ctx context.Context, store storage.AuditLog, size int64) (*edge, error) {
	e := &edge{size: size, tiles: map[tileKey][]byte{}}
	for level := 0; size>>(height*level) > 0; level++ {
		at := tileKey{level, size >> (height * (level + 1))}
		width := int(size>>(height*level)) & (tileWidth - 1)
		if width == 0 {
			continue
		}
		found, err := store.AuditTiles(ctx, level, at.number, 1)
		if err != nil {
			return nil, err
		}
		if len(found) == 0 || found[0].Number != at.number || len(found[0].Hashes) < width*tlog.HashSize {
			return nil, errTiles
		}
		e.tiles[at] = found[0].Hashes[:width*tlog.HashSize]
	}
	return e, nil
}

// ReadHashes implements tlog.HashReader for what is needed to go on at the edge.
func (e *edge) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	out := make([]tlog.Hash, len(indexes))
	for i, index := range indexes {
		h, known := e.fresh[index]
		if !known {
			t := tlog.TileForIndex(height, index)
			data := e.tiles[tileKey{t.L, t.N}]
			if len(data) < t.W*tlog.HashSize {
				return nil, errTiles
			}
			var err error
			if h, err = tlog.HashFromTile(t, data[:t.W*tlog.HashSize], index); err != nil {
				return nil, err
			}
		}
		out[i] = h
	}
	return out, nil
}

// grow returns the edge with further leaves, and the tiles that change.
func (e *edge) grow(leaves []tlog.Hash) (*edge, []storage.AuditTile, error) {
	grown := &edge{size: e.size + int64(len(leaves)), tiles: map[tileKey][]byte{}}
	work := &edge{tiles: e.tiles, fresh: make(map[int64]tlog.Hash, 2*len(leaves))}
	for i, leaf := range leaves {
		n := e.size + int64(i)
		hashes, err := tlog.StoredHashesForRecordHash(n, leaf, work)
		if err != nil {
			return nil, nil, err
		}
		for level, h := range hashes {
			work.fresh[tlog.StoredHashIndex(level, n>>level)] = h
		}
	}
	var tiles []storage.AuditTile
	for _, t := range tlog.NewTiles(height, e.size, grown.size) {
		data, err := tlog.ReadTileData(t, work)
		if err != nil {
			return nil, nil, err
		}
		tiles = append(tiles, storage.AuditTile{Level: t.L, Number: t.N, Hashes: data})
	}
	// A tile that did not change is still at the edge if it is not full.
	for at, data := range e.tiles {
		grown.tiles[at] = data
	}
	for _, t := range tiles {
		grown.tiles[tileKey{t.Level, t.Number}] = t.Hashes
	}
	for at, data := range grown.tiles {
		if len(data) == tileWidth*tlog.HashSize {
			delete(grown.tiles, at)
		}
	}
	return grown, tiles, nil
}

// stored reads hashes of the tree from the store, for one root or proof. It believes what it reads.
type stored struct {
	ctx   context.Context
	store storage.AuditLog
	tiles map[tileKey][]byte
}

func readStored(ctx context.Context, store storage.AuditLog) *stored {
	return &stored{ctx, store, map[tileKey][]byte{}}
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
		return nil, err
	}
	if len(found) == 0 || found[0].Number != at.number {
		return nil, errTiles
	}
	s.tiles[at] = found[0].Hashes
	return found[0].Hashes, nil
}
