package thirdparty

import (
	"context"
	"errors"
	"fmt"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// settle converts rows that an earlier version sealed to the row ID alone, and seals them to the
// whole row. It runs once per store, before anything is sealed to the whole row. From then on old
// envelopes are refused, because a saved one could be copied into a row with another provider or
// user. A row of the new form that opens proves that the conversion is done, because making one
// requires the master key.
func (d *Delegation) settle(ctx context.Context) error {
	if d.settled.Load() {
		return nil
	}
	d.settling.Lock()
	defer d.settling.Unlock()
	if d.settled.Load() {
		return nil
	}
	done, err := d.hasSettled(ctx)
	if err == nil && !done {
		err = d.convertAll(ctx)
	}
	if err != nil {
		return fmt.Errorf("thirdparty: settle: %w", err)
	}
	d.settled.Store(true)
	return nil
}

// hasSettled reports whether a live session is sealed to its whole row.
func (d *Delegation) hasSettled(ctx context.Context) (done bool, err error) {
	err = d.eachSession(ctx, func(u storage.Upstream) (bool, error) {
		_, err := d.vault.open(u)
		done = err == nil
		return !done, nil
	})
	return done, err
}

// convertAll converts every session that an earlier version sealed. A session whose master key is
// missing stays unchanged.
func (d *Delegation) convertAll(ctx context.Context) error {
	for range resealTries {
		missed := 0
		err := d.eachSession(ctx, func(u storage.Upstream) (bool, error) {
			if !byID(u.Sealed) {
				return true, nil
			}
			sealed, err := d.vault.convert(u)
			if err != nil {
				d.cfg.Logger.WarnContext(ctx, "provider session cannot be sealed again", "connector", u.Connector,
					"provider_session", u.ID, "error", errUnopened)
				return true, nil
			}
			err = d.cfg.Store.ResealUpstream(ctx, u.ID, u.Sealed, sealed)
			if errors.Is(err, storage.ErrSpent) { // a server of an earlier version has stored it in the meantime
				missed++
				err = nil
			}
			return true, err
		})
		if err != nil || missed == 0 {
			return err
		}
	}
	return nil
}

// eachSession calls do with every live session until it returns false.
func (d *Delegation) eachSession(ctx context.Context, do func(storage.Upstream) (bool, error)) error {
	for after := ""; ; {
		page, err := d.cfg.Store.ListUpstreams(ctx, after, batch)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, u := range page {
			after = u.ID
			if more, err := do(u); err != nil || !more {
				return err
			}
		}
	}
}
