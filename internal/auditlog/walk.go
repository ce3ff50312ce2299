package auditlog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/mcp-authd/mcp-authd/audit/verify"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

const (
	// chainIdle is the time without entries after which a writer begins a new chain.
	chainIdle = time.Hour
	// chainKept is how long the signer remembers an idle chain. It is longer, as clocks differ.
	chainKept = 3 * time.Hour
	// chainLate limits the age of an unknown chain at the last signature. A new chain is younger,
	// because its first entry is appended at once; a forgotten one is older.
	chainLate = 2 * time.Hour
	// maxChains limits the chains that the signer remembers.
	maxChains = 4096
	// mixedTime is how long older versions may write entries without MACs after an upgrade.
	mixedTime = 24 * time.Hour
)

// extent is the checked part of the log, and the state needed to check the next entry.
type extent struct {
	Size       int64                `json:"size"`
	Spine      []tlog.Hash          `json:"spine,omitempty"`  // roots of the complete subtrees, from the left
	Chains     map[string]lastOfOne `json:"chains,omitempty"` // by id
	SealedFrom int64                `json:"sealed_from,omitempty"`
	At         time.Time            `json:"at,omitzero"` // never decreases
	before     time.Time            // At before this check
}

// lastOfOne is the end of a chain.
type lastOfOne struct {
	Next int64     `json:"next"`
	Seen time.Time `json:"seen"`
}

func (x extent) root() tlog.Hash {
	if x.Size == 0 {
		empty, _ := tlog.TreeHash(0, nil) // reads nothing
		return empty
	}
	root := x.Spine[len(x.Spine)-1]
	for _, left := range slices.Backward(x.Spine[:len(x.Spine)-1]) {
		root = tlog.NodeHash(left, root)
	}
	return root
}

// grow adds a leaf. Two complete subtrees of equal size merge into one.
func (x *extent) grow(h tlog.Hash) {
	for n := x.Size; n&1 == 1; n >>= 1 {
		last := len(x.Spine) - 1
		x.Spine, h = x.Spine[:last], tlog.NodeHash(x.Spine[last], h)
	}
	x.Spine, x.Size = append(x.Spine, h), x.Size+1
}

// clone returns an independent copy, with the time set to now unless that is earlier.
func (x extent) clone(now time.Time) extent {
	x.Spine, x.Chains = slices.Clone(x.Spine), maps.Clone(x.Chains)
	if x.Chains == nil {
		x.Chains = map[string]lastOfOne{}
	}
	x.before = x.At
	if now.After(x.At) {
		x.At = now.UTC().Truncate(time.Millisecond)
	}
	return x
}

// forget drops chains that their writers no longer use, and the oldest beyond maxChains.
func (x *extent) forget() {
	maps.DeleteFunc(x.Chains, func(_ string, l lastOfOne) bool { return x.At.Sub(l.Seen) > chainKept })
	if len(x.Chains) <= maxChains {
		return
	}
	byAge := slices.SortedFunc(maps.Keys(x.Chains), func(a, b string) int {
		return x.Chains[a].Seen.Compare(x.Chains[b].Seen)
	})
	for _, id := range byAge[:len(byAge)-maxChains] {
		delete(x.Chains, id)
	}
}

// follow checks that an entry is the next one of its writer. unsealed accepts entries without a
// MAC; started accepts chains from any number, because their first entries may be removed.
func (x *extent) follow(m *MAC, index int64, leaf []byte, unsealed, started bool) error {
	link, err := m.Check(leaf)
	switch {
	case errors.Is(err, errNoMAC) && unsealed:
		x.SealedFrom = max(x.SealedFrom, index+1)
		return nil
	case err != nil:
		return &verify.Wrong{First: index, Last: index, Why: err.Error()}
	}
	before, known := x.Chains[link.Chain]
	if link.Number != before.Next && (known || !started) {
		return &verify.Wrong{First: index, Last: index, Why: fmt.Sprintf(
			"it is out of order (entry %d of that writer, in the place of entry %d): entries were removed or moved",
			link.Number, before.Next)}
	}
	if made, _ := secrets.TimeOf(link.Chain); !known && !started && made.Before(x.before.Add(-chainLate)) {
		return &verify.Wrong{First: index, Last: index, Why: "it is a copy of an entry of a writer that has ended"}
	}
	x.Chains[link.Chain] = lastOfOne{link.Number + 1, x.At}
	return nil
}

// walk checks the entries from x up to a size, and returns the new extent. It calls at after each
// entry.
func (x extent) walk(
	ctx context.Context, store storage.AuditLog, m *MAC, to int64, unsealed bool, at func(extent) error,
) (extent, error) {
	for x.Size < to {
		some, err := store.AuditEntries(ctx, storage.AuditQuery{From: x.Size, Below: to, Limit: page})
		if err != nil {
			return x, err
		}
		if len(some) == 0 {
			return x, &verify.Wrong{First: x.Size, Last: x.Size, Why: "it is missing"}
		}
		for _, e := range some {
			if e.Index != x.Size {
				return x, &verify.Wrong{First: x.Size, Last: x.Size, Why: "it is missing"}
			}
			if err := x.follow(m, e.Index, e.Leaf, unsealed, false); err != nil {
				return x, err
			}
			x.grow(tlog.RecordHash(e.Leaf))
			if err := at(x); err != nil {
				return x, err
			}
		}
	}
	return x, nil
}

// readSpine reads the roots of the complete subtrees of a tree of this size. It does not verify
// them.
func readSpine(ctx context.Context, store storage.AuditLog, size int64) ([]tlog.Hash, error) {
	var indexes []int64
	for level, begin := 62, int64(0); level >= 0; level-- {
		if width := int64(1) << level; size&width != 0 {
			indexes = append(indexes, tlog.StoredHashIndex(level, begin>>level))
			begin += width
		}
	}
	return readStored(ctx, store).ReadHashes(indexes)
}
