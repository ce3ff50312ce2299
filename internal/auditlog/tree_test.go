package auditlog

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/mcp-authd/mcp-authd/audit/verify"
)

// TestGrow: OB-04. For any batch sizes, the tiles give the root that RFC 9162 defines, across the
// tile boundaries of each level.
func TestGrow(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const n = 256*256 + 300
	naive := verify.NewLog("")
	e := &edge{tiles: map[tileKey][]byte{}}
	all := &stored{tiles: map[tileKey][]byte{}}
	for e.size < n {
		var leaves []tlog.Hash
		for i := range min(1+rng.Int64N(600), n-e.size) {
			h := tlog.RecordHash(fmt.Append(nil, e.size+i))
			leaves = append(leaves, h)
			if err := naive.Removed(e.size+i, h); err != nil {
				t.Fatal(err)
			}
		}
		grown, tiles := e.grow(leaves)
		for _, tile := range tiles {
			all.tiles[tileKey{tile.Level, tile.Number}] = tile.Hashes
		}
		e = grown
		got, err := tlog.TreeHash(e.size, all)
		if err != nil || got != naive.Root() {
			t.Fatalf("the root of %d leaves: got %v, %v, want %v", e.size, got, err, naive.Root())
		}
		if len(e.tiles) > 3 {
			t.Fatalf("the edge has %d tiles", len(e.tiles))
		}
	}
}
