package keys

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/storage"
)

// step is what a key's life asks for at a moment.
type step int

const (
	stepNone    step = iota
	stepFirst        // no key is active: make one
	stepPublish      // the active key is due: publish its successor
	stepPromote      // the next key has been published for long enough
	stepRetire       // a key of another algorithm is needed no longer
)

// rollout is how long replicas with different algorithms may run side by side. For that
// time after one of them has made its key active, those with another algorithm leave
// everything as it is, or they would retire each other's keys.
const rollout = 24 * time.Hour

// due is the next step for the keys of a set, and the key that it concerns.
func (m *Manager) due(s *set, now time.Time) (step, storage.SigningKey) {
	active, next, other := m.activeOf(s), s.find(m.cfg.Algorithm, storage.KeyNext), m.otherActive(s)
	yield := other != nil && (active == nil || since(*other).After(since(*active))) &&
		now.Before(since(*other).Add(rollout))
	switch {
	case yield:
	case active == nil:
		return stepFirst, storage.SigningKey{}
	case next != nil && !now.Before(next.CreatedAt.Add(m.cfg.PublishAhead)):
		return stepPromote, *next
	case next == nil && m.cfg.RotateEvery > 0 && !now.Before(since(*active).Add(m.cfg.RotateEvery-m.cfg.PublishAhead)):
		return stepPublish, *active
	case !now.Before(since(*active).Add(m.cfg.PublishAhead)):
		for _, k := range s.stored {
			if k.State != storage.KeyRetired && k.Algorithm != m.cfg.Algorithm {
				return stepRetire, k
			}
		}
	}
	return stepNone, storage.SigningKey{}
}

// Tend does what is due: it publishes the successor of a key that has signed for
// RotateEvery less PublishAhead, promotes a key that was published for PublishAhead, and
// retires keys of an algorithm that is no longer configured. Call it every few seconds,
// in any number of replicas: each step is taken once.
func (m *Manager) Tend(ctx context.Context) error {
	s, err := m.load(ctx)
	if err == nil {
		err = m.tendTokenKey(ctx)
	}
	if err != nil {
		return fmt.Errorf("keys: tend: %w", err)
	}
	what, k := m.due(s, m.cfg.Now())
	switch what {
	case stepFirst:
		err = m.ensure(ctx)
	case stepPublish:
		_, err = m.publish(ctx, k.ID)
	case stepPromote:
		err = m.promote(ctx, m.activeOf(s).ID, k)
	case stepRetire:
		now := m.cfg.Now()
		if err = m.cfg.Store.RetireKey(ctx, k.ID, now, m.retiredUntil(now)); err == nil {
			m.cfg.Audit.Record(ctx, audit.SigningKeyRetired, slog.String("kid", k.ID),
				slog.String("algorithm", k.Algorithm))
		}
	}
	if err != nil && !errors.Is(err, storage.ErrSpent) { // spent: another replica was first
		return fmt.Errorf("keys: tend: %w", err)
	}
	if what != stepNone {
		_, err = m.reload(ctx)
	}
	return err
}

// retiredUntil is when the last token of a key that retires now is out of use.
func (m *Manager) retiredUntil(now time.Time) time.Time {
	return now.Add(m.cfg.AccessTTL + publishedCache)
}

// publish stores a next key, if active still is, and reports whether it was this call.
func (m *Manager) publish(ctx context.Context, active string) (bool, error) {
	k, err := m.generate()
	if err != nil {
		return false, err
	}
	k.State, k.ActivatedAt = storage.KeyNext, time.Time{}
	stored, err := m.cfg.Store.PutNextKey(ctx, active, k)
	if stored {
		m.cfg.Audit.Record(ctx, audit.SigningKeyPublished, slog.String("kid", k.ID),
			slog.String("algorithm", k.Algorithm))
	}
	return stored, err
}

// promote makes a next key active, unless this replica could not sign with it.
func (m *Manager) promote(ctx context.Context, from string, next storage.SigningKey) error {
	if _, err := m.open(next); err != nil {
		return err
	}
	now := m.cfg.Now()
	if err := m.cfg.Store.PromoteKey(ctx, from, next.ID, now, m.retiredUntil(now)); err != nil {
		return err
	}
	m.rotated(ctx, from, next.ID)
	return nil
}

func (m *Manager) rotated(ctx context.Context, from, to string) {
	m.cfg.Audit.Record(ctx, audit.SigningKeyRotated, slog.String("from", from), slog.String("kid", to))
}

// Publish begins a rotation out of turn: it publishes the next key, which Tend promotes
// after PublishAhead, and returns it. If there is one already, it is returned.
func (m *Manager) Publish(ctx context.Context) (storage.SigningKey, error) {
	if err := m.ensure(ctx); err != nil {
		return storage.SigningKey{}, fmt.Errorf("keys: publish: %w", err)
	}
	for range tries {
		s, err := m.reload(ctx)
		if err != nil {
			return storage.SigningKey{}, fmt.Errorf("keys: publish: %w", err)
		}
		if next := s.find(m.cfg.Algorithm, storage.KeyNext); next != nil {
			out := *next
			out.Private = nil
			return out, nil
		}
		if active := m.activeOf(s); active != nil {
			if _, err := m.publish(ctx, active.ID); err != nil {
				return storage.SigningKey{}, fmt.Errorf("keys: publish: %w", err)
			}
		}
	}
	return storage.SigningKey{}, errContended
}

// tries is how often an operator's command starts over when others rotate meanwhile.
const tries = 5

var errContended = errors.New("keys: others are changing the keys at the same time; try again")

// Rotate makes another key active at once: the next one if there is one, else a new one,
// which resource servers have not seen and must fetch. The present key retires. Of N
// callers at once one rotates; the others find it done and return nil as well.
func (m *Manager) Rotate(ctx context.Context) error {
	s, err := m.reload(ctx)
	if err != nil {
		return fmt.Errorf("keys: rotate: %w", err)
	}
	active := m.activeOf(s)
	if active == nil {
		return m.ensure(ctx)
	}
	if next := s.find(m.cfg.Algorithm, storage.KeyNext); next != nil {
		err = m.promote(ctx, active.ID, *next)
	} else {
		err = m.replace(ctx, active.ID)
	}
	if err != nil && !errors.Is(err, storage.ErrSpent) {
		return fmt.Errorf("keys: rotate: %w", err)
	}
	_, err = m.reload(ctx)
	return err
}

// replace makes a new key active in place of from.
func (m *Manager) replace(ctx context.Context, from string) error {
	k, err := m.generate()
	if err != nil {
		return err
	}
	now := m.cfg.Now()
	if err := m.cfg.Store.RotateKey(ctx, from, k, now, m.retiredUntil(now)); err != nil {
		return err
	}
	m.rotated(ctx, from, k.ID)
	return nil
}

// Revoke takes keys out at once, because they may be in the wrong hands: they are no longer
// published, and no token that they signed is ours any more. An active key is replaced by a new one
// first, never by the next one, which lay beside it. Of several keys, those that are gone already
// are no error; ErrNotFound when all of them are gone.
func (m *Manager) Revoke(ctx context.Context, ids ...string) error {
	found := false
	for _, id := range ids {
		err := m.revoke(ctx, id)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return fmt.Errorf("keys: revoke %s: %w", id, err)
		}
		found = found || err == nil
	}
	if _, err := m.reload(ctx); err != nil {
		return fmt.Errorf("keys: revoke: %w", err)
	}
	if !found {
		return ErrNotFound
	}
	return nil
}

func (m *Manager) revoke(ctx context.Context, id string) error {
	for range tries {
		s, err := m.reload(ctx)
		if err != nil {
			return err
		}
		active := m.activeOf(s)
		switch {
		case active == nil:
			err = m.ensure(ctx)
		case active.ID == id:
			err = m.replace(ctx, id)
		}
		if err != nil && !errors.Is(err, storage.ErrSpent) {
			return err
		}
		switch err := m.cfg.Store.RevokeKey(ctx, id); {
		case errors.Is(err, storage.ErrNotFound):
			return ErrNotFound
		case errors.Is(err, storage.ErrSpent): // it has just become the active one
			continue
		case err != nil:
			return err
		}
		m.cfg.Audit.Record(ctx, audit.SigningKeyRevoked, slog.String("kid", id))
		return nil
	}
	return errContended
}

// RevokeAll replaces the active key by a new one and revokes every other: for when the
// private keys may be in the wrong hands.
func (m *Manager) RevokeAll(ctx context.Context) error {
	all, err := m.List(ctx)
	if err != nil {
		return err
	}
	ids := make([]string, len(all))
	for i, k := range all {
		ids[i] = k.ID
	}
	if err := m.Revoke(ctx, ids...); !errors.Is(err, ErrNotFound) {
		return err
	}
	return m.ensure(ctx)
}
