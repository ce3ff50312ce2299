package trust

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

const (
	configuredFact = "trust.configured" // the store's name for the configured entries
	// removedKept is how long each start revokes the grants of a removed entry again. Another
	// server may still run with the earlier configuration and issue grants. Its last grant expires
	// within this time.
	removedKept = 24 * time.Hour
)

// Memory lists the storage methods that EndRemoved uses.
type Memory interface {
	Lister
	// Remember is storage.Housekeeping.Remember.
	Remember(ctx context.Context, name string, value []byte) (before []byte, err error)
	// CutGrants is storage.Cuts.CutGrants.
	CutGrants(ctx context.Context, sel storage.Selection, by storage.RevokedBy, now time.Time) (storage.Cut, error)
}

// remembered is an entry of the current or an earlier configuration.
type remembered struct {
	Issuer  string `json:"issuer"`
	Removed int64  `json:"removed,omitempty"` // Unix time of the first start without it; 0: still configured
}

// EndRemoved revokes the grants of entries that were removed from the configuration, or changed
// their issuer, since an earlier start. Call it at the start of a server with its configured
// entries. It returns the IDs of newly removed entries.
//
// A revocation affects only earlier grants, so an entry that is added again starts with none. A
// server that still runs with the earlier configuration continues to accept the entry. Its grants
// are revoked by the next start without the entry, or expire. The revocation happens before it is
// remembered, so the next start repeats it if this one fails in between.
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
			continue // it is still configured, or is back
		case again && (stored[id] || now.Sub(time.Unix(was.Removed, 0)) >= removedKept):
			continue // the administrator has added an entry with the ID to the store, or removedKept has passed
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
