package trust

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/mcp-authd/mcp-authd/storage"
)

const (
	configuredFact = "trust.configured" // where the store remembers the entries of the configuration
	// removedKept is how long starts end again what rests on an entry that is gone: a server with the
	// earlier configuration may run on beside, and grant by it. Its last grant lives no longer than that.
	removedKept = 24 * time.Hour
)

// Memory is what EndRemoved needs of the store.
type Memory interface {
	Lister
	// Remember is that of storage.Housekeeping.
	Remember(ctx context.Context, name string, value []byte) (before []byte, err error)
	// CutGrants is that of storage.Cuts.
	CutGrants(ctx context.Context, sel storage.Selection, by storage.RevokedBy, now time.Time) (storage.Cut, error)
}

// remembered is an entry that the configuration has, or had.
type remembered struct {
	Issuer  string `json:"issuer"`
	Removed int64  `json:"removed,omitempty"` // Unix time of the start that missed it; 0: the configuration has it
}

// EndRemoved is called when a server starts, with the entries of its configuration. It cuts the grants that
// rest on an entry that the configuration had at an earlier start, and has no more, or has for another
// issuer, and returns the ids of those that it had not cut before.
//
// A cut ends what was granted before it. An entry that comes back starts with nothing, and a server that
// runs on with the earlier configuration goes on to believe it: what that server grants meanwhile is cut by
// the next start without the entry, or ends by itself. The cut comes before it is remembered, so that a
// start that fails in between is made up for by the next.
func EndRemoved(
	ctx context.Context, m Memory, entries []storage.TrustEntry, now time.Time,
) (removed []string, err error) {
	raw, err := m.Remember(ctx, configuredFact, nil)
	if err != nil {
		return nil, err
	}
	before, after := map[string]remembered{}, map[string]remembered{}
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &before); err != nil {
			return nil, fmt.Errorf("trust entries of the last start: %w", err)
		}
	}
	for _, e := range entries {
		full, err := Check(e)
		if err != nil {
			return nil, fmt.Errorf("trust %q: %w", e.ID, err)
		}
		after[e.ID] = remembered{Issuer: full.Issuer}
	}
	stored, err := storedIDs(ctx, m)
	if err != nil {
		return nil, err
	}
	for _, id := range slices.Sorted(maps.Keys(before)) {
		was, is := before[id], after[id]
		again := was.Removed != 0
		switch {
		case is.Issuer != "" && (again || is.Issuer == was.Issuer):
			continue // it stays, or comes back
		case again && (stored[id] || now.Sub(time.Unix(was.Removed, 0)) >= removedKept):
			continue // the operator has added one of that id to the store, or it is over
		case is.Issuer == "":
			after[id] = remembered{was.Issuer, removedAt(was, now)}
		}
		if _, err := m.CutGrants(ctx, storage.Selection{Trust: id}, storage.ByTrust, now); err != nil {
			return removed, err
		}
		if !again {
			removed = append(removed, id)
		}
	}
	return removed, remember(ctx, m, before, after)
}

func removedAt(was remembered, now time.Time) int64 {
	if was.Removed != 0 {
		return was.Removed
	}
	return now.Unix()
}

func storedIDs(ctx context.Context, m Memory) (map[string]bool, error) {
	stored, err := m.ListTrust(ctx)
	ids := map[string]bool{}
	for _, e := range stored {
		ids[e.ID] = !e.Mark()
	}
	return ids, err
}

func remember(ctx context.Context, m Memory, before, after map[string]remembered) error {
	if maps.Equal(before, after) {
		return nil
	}
	raw, err := json.Marshal(after)
	if err != nil {
		return err
	}
	_, err = m.Remember(ctx, configuredFact, raw)
	return err
}
