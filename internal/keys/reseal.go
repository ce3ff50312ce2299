package keys

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// Reseal moves the store to the primary master key. It seals the shared keys and every signing key
// again that an older master key sealed, and then sets the fingerprint to the primary key. It
// returns the number of changed signing keys. It can be repeated and interrupted. Running servers
// are not affected if they know the new primary key.
func (m *Manager) Reseal(ctx context.Context) (n int, err error) {
	fp, err := m.cfg.Store.Fingerprint(ctx, m.ring.Fingerprint())
	if err != nil {
		return 0, fmt.Errorf("keys: reseal: %w", err)
	}
	for _, shared := range []struct{ name, what string }{
		{tokenKeyName, tokenKeyWhat}, {auditKeyName, auditKeyWhat}, {AuditSealName, auditSealWhat},
	} {
		if err := m.resealShared(ctx, shared.name, shared.what); err != nil {
			return 0, fmt.Errorf("keys: reseal: %w", err)
		}
	}
	for range tries {
		again, err := m.resealAll(ctx, &n)
		if err != nil {
			return n, fmt.Errorf("keys: reseal: %w", err)
		}
		if again {
			continue
		}
		return n, m.moveFingerprint(ctx, fp, n)
	}
	return n, errContended
}

// resealAll seals every key again that needs it. It reports whether to run again, because another
// process may have stored keys in the meantime.
func (m *Manager) resealAll(ctx context.Context, n *int) (again bool, err error) {
	s, err := m.reload(ctx)
	if err != nil {
		return false, err
	}
	for _, k := range s.stored {
		sealed, changed, err := m.ring.Reseal(sealPurpose, k.Private, []byte(k.ID))
		if err != nil {
			return false,
				fmt.Errorf("signing key %s cannot be opened: add the master key that sealed it to the old ones", k.ID)
		}
		if !changed {
			continue
		}
		again = true
		switch err := m.cfg.Store.ResealKey(ctx, k.ID, k.Private, sealed); {
		case errors.Is(err, storage.ErrSpent):
		case err != nil:
			return false, err
		default:
			*n++
		}
	}
	return again, nil
}

// resealShared seals a shared key with the primary master key.
func (m *Manager) resealShared(ctx context.Context, name, what string) error {
	for range tries {
		old, err := m.cfg.Store.SharedKey(ctx, name, nil)
		if err != nil || old == nil {
			return err
		}
		sealed, changed, err := m.ring.Reseal(name, old, nil)
		if err != nil {
			return notOpened(what)
		}
		if !changed {
			return nil
		}
		err = m.cfg.Store.ReplaceSharedKey(ctx, name, old, sealed)
		if !errors.Is(err, storage.ErrSpent) {
			return err
		}
	}
	return errContended
}

func notOpened(what string) error {
	return fmt.Errorf("%s cannot be opened: add the master key that sealed it to the old ones", what)
}

func (m *Manager) moveFingerprint(ctx context.Context, from []byte, n int) error {
	to := m.ring.Fingerprint()
	if bytes.Equal(from, to) {
		return nil
	}
	switch err := m.cfg.Store.MoveFingerprint(ctx, from, to); {
	case errors.Is(err, storage.ErrSpent): // another process moved it, perhaps to a third key
		if now, err := m.cfg.Store.Fingerprint(ctx, to); err != nil || !bytes.Equal(now, to) {
			return errors.Join(errContended, err)
		}
		return nil
	case err != nil:
		return fmt.Errorf("keys: reseal: %w", err)
	}
	m.cfg.Audit.Record(ctx, audit.MasterKeyChanged, slog.Int("signing_keys", n))
	return nil
}
