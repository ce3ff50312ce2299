package thirdparty

import (
	"context"
	"errors"
	"fmt"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// Reseal moves the vault to the primary master key. It seals every data key that an older master
// key sealed again, in place, and leaves the tokens themselves unchanged. It returns the number of
// changed rows. It can be repeated and interrupted while servers run that know the new primary key.
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

// resealTries limits how often Reseal retries sessions that another process changed in the
// meantime.
const resealTries = 5

// resealAll processes all sessions once and returns how many changed concurrently.
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

// current returns the content of a row, sealed under the primary master key if possible. Reseal may
// have changed the row since it was read, and storing the old form would undo that.
func (d *Delegation) current(u storage.Upstream) []byte {
	if sealed, _, err := d.vault.reseal(u); err == nil {
		return sealed
	}
	return u.Sealed
}
