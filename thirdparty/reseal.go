package thirdparty

import (
	"context"
	"errors"
	"fmt"

	"github.com/mcp-authd/mcp-authd/storage"
)

// Reseal moves the vault to the primary master key: the data key of every session that an
// older one sealed is sealed again in its place; the tokens themselves are not touched. It
// returns how many it sealed. It may be repeated, and interrupted, while servers run that
// know the primary too.
func (d *Delegation) Reseal(ctx context.Context) (n int, err error) {
	if err := d.settle(ctx); err != nil {
		return 0, err
	}
	for range resealTries {
		missed, err := d.resealAll(ctx, &n)
		if err != nil {
			return n, fmt.Errorf("thirdparty: reseal: %w", err)
		}
		if missed == 0 {
			return n, nil
		}
	}
	return n, errors.New(
		"thirdparty: reseal: servers go on sealing under an older master key: give all of them the new one and try again",
	)
}

// resealTries is how often those are looked at again that another process stored meanwhile.
const resealTries = 5

// resealAll goes through all sessions once and returns how many changed under its hands.
func (d *Delegation) resealAll(ctx context.Context, n *int) (missed int, err error) {
	for after := ""; ; {
		page, err := d.cfg.Store.ListUpstreams(ctx, after, batch)
		if err != nil || len(page) == 0 {
			return missed, err
		}
		for _, u := range page {
			after = u.ID
			if byID(u.Sealed) { // refused: see settle
				continue
			}
			sealed, changed, err := d.vault.reseal(u)
			if err != nil {
				return missed, fmt.Errorf("session %s of %s: %w", u.ID, u.Connector, errUnopened)
			}
			if !changed {
				continue
			}
			switch err := d.cfg.Store.ResealUpstream(ctx, u.ID, u.Sealed, sealed); {
			case errors.Is(err, storage.ErrSpent):
				missed++
			case err != nil:
				return missed, err
			default:
				*n++
			}
		}
	}
}

// current is what a row holds, sealed under the primary master key if it can be: Reseal
// may have been there since the row was read, and must not be undone by storing it again.
func (d *Delegation) current(u storage.Upstream) []byte {
	if sealed, _, err := d.vault.reseal(u); err == nil {
		return sealed
	}
	return u.Sealed
}
