package keys

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// step is the next step in the life of the keys.
type step int

const (
	stepNone    step = iota
	stepFirst        // no key is active: create one
	stepPublish      // the active key is due: publish its successor
	stepPromote      // the next key has been published long enough
	stepRetire       // a key of another algorithm is no longer needed
)

// rollout is how long replicas with different algorithms may run side by side. During that time
// after one of them activated its key, replicas with another algorithm change nothing. Otherwise
// they would retire each other's keys.
const rollout = 24 * time.Hour

// due returns the next step for the keys of a set, and the affected key.
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

// Tend executes the step that is due. There are three:
//   - publish the successor of a key that has signed for RotateEvery minus PublishAhead
//   - promote a key that was published for PublishAhead
//   - retire a key of an algorithm that is no longer configured
//
// Call it every few seconds, in any number of replicas: each step is executed once.
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
	if err != nil && !errors.Is(err, storage.ErrSpent) { // another replica was first
		return fmt.Errorf("keys: tend: %w", err)
	}
	if what != stepNone {
		_, err = m.reload(ctx)
	}
	return err
}

// retiredUntil returns when the last token of a key that retires now is out of use.
func (m *Manager) retiredUntil(now time.Time) time.Time {
	return now.Add(m.cfg.AccessTTL + publishedCache)
}

// publish stores a next key if active is still active, and reports whether this call stored it.
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

// promote activates a next key, unless this replica cannot open it.
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

// Publish starts an unscheduled rotation. It publishes and returns the next key, which Tend
// promotes after PublishAhead. If there already is a next key, Publish returns it.
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

// tries is how often an administrator's command retries if other processes change keys at the same
// time.
const tries = 5

var errContended = errors.New("keys: others are changing the keys at the same time; try again")

// Rotate activates another key immediately: the next key, or else a new one that resource servers
// must fetch first. The current key retires. If several callers run at once, one rotates and all
// return nil.
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

// replace activates a new key in place of from.
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

// Revoke removes keys immediately, because they may be compromised. They are no longer published,
// and tokens that they signed no longer verify. An active key is first replaced with a new key,
// never with the next key, which may be compromised like the active one. IDs of removed keys are
// ignored, unless all are: then it returns ErrNotFound.
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
		case errors.Is(err, storage.ErrSpent): // the key has just become active
			continue
		case err != nil:
			return err
		}
		m.cfg.Audit.Record(ctx, audit.SigningKeyRevoked, slog.String("kid", id))
		return nil
	}
	return errContended
}

// RevokeAll replaces the active key with a new one and revokes every other key. Use it when the
// private keys may be compromised.
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
