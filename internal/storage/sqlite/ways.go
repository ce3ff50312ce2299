package sqlite

import (
	"context"
	"errors"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

// insertWay stores an authentication method of an enabled account, unless the account already has
// ?11, or ?12 apps.
const insertWay = "INSERT INTO ways (" + column.WayColumns + `) SELECT ?1,?2,?3,?4,?5,?6,?7,?8,?9,?10
WHERE EXISTS (SELECT 1 FROM users WHERE id = ?2 AND NOT disabled) AND (SELECT count(*) FROM ways WHERE user_id = ?2) < ?11
	AND (?3 <> 'app' OR (SELECT count(*) FROM ways WHERE user_id = ?2 AND kind = 'app') < ?12)`

func wayValues(w storage.Way) []any {
	return append(column.WayValues(w), storage.MaxWays, storage.MaxApps)
}

// change runs fn, which changes a user's authentication methods, in a transaction. It returns
// storage.ErrSignedOut unless in is a live session of the user, or zero.
func (s *Store) change(ctx context.Context, what, userID string, in storage.Hash, fn func(c *conn) error) error {
	return s.write(ctx, what, func(c *conn) error {
		if in == (storage.Hash{}) {
			return fn(c)
		}
		err := c.one([]any{new(int)}, "SELECT 1 FROM sessions s WHERE s.hash = ? AND s.user_id = ? AND NOT "+
			column.IsSignedOut, in[:], userID)
		if errors.Is(err, storage.ErrNotFound) {
			return storage.ErrSignedOut
		}
		if err != nil {
			return err
		}
		return fn(c)
	})
}

// AddWay implements storage.Ways.
func (s *Store) AddWay(ctx context.Context, w storage.Way, in storage.Hash) error {
	return s.change(ctx, "AddWay", w.UserID, in, func(c *conn) error {
		n, err := c.exec(insertWay, wayValues(w)...)
		if err != nil || n > 0 {
			return err
		}
		if err := enabled(c, w.UserID); err != nil {
			return err
		}
		return storage.ErrFull
	})
}

// enabled returns ErrNotFound if the account is gone or disabled.
func enabled(c *conn, userID string) error {
	var one int
	return c.one([]any{&one}, "SELECT 1 FROM users WHERE id = ? AND NOT disabled", userID)
}

// PasskeyOwner implements storage.Ways.
func (s *Store) PasskeyOwner(ctx context.Context, credentialID []byte) (storage.Way, storage.User, error) {
	var w column.WayRow
	var u column.UserRow
	err := s.read(ctx, "PasskeyOwner", func(c *conn) error {
		w, u = column.WayRow{}, column.UserRow{}
		err := c.one(w.Dest(), "SELECT "+column.WayColumns+" FROM ways WHERE credential_id = ?", credentialID)
		if err != nil {
			return err
		}
		return c.one(u.Dest(), "SELECT "+column.UserColumns+" FROM users WHERE id = ?", w.Way().UserID)
	})
	if err != nil {
		return storage.Way{}, storage.User{}, err
	}
	return w.Way(), u.User(), nil
}

// RenameWay implements storage.Ways.
func (s *Store) RenameWay(
	ctx context.Context, userID, id, name string, in storage.Hash,
) (before string, err error) {
	err = s.change(ctx, "RenameWay", userID, in, func(c *conn) error {
		err := c.one([]any{&before}, "SELECT name FROM ways WHERE id = ? AND user_id = ?", id, userID)
		if err == nil {
			_, err = c.exec("UPDATE ways SET name = ? WHERE id = ?", name, id)
		}
		return err
	})
	return before, err
}

// The methods that are enough for a user ?1 to sign in: a passkey of the relying parties ?2, an
// account at the providers ?3, a password if ?4.
const (
	aPassword = "EXISTS (SELECT 1 FROM users WHERE id = ?1 AND password_hash <> '' AND ?4)"
	aProvider = "EXISTS (SELECT 1 FROM identities WHERE user_id = ?1 AND connector IN (SELECT value FROM json_each(?3))"
	aPasskey  = "EXISTS (SELECT 1 FROM ways WHERE user_id = ?1 AND kind = 'passkey' AND rp_id IN (SELECT value FROM json_each(?2))"

	removeWay = `DELETE FROM ways WHERE user_id = ?1 AND id = ?5 AND (kind <> 'passkey' OR ` + aPassword + " OR " + aProvider +
		") OR " + aPasskey + " AND id <> ?5))"
	removePassword = "UPDATE users SET password_hash = '' WHERE id = ?1 AND password_hash <> '' AND (" + aProvider + ") OR " +
		aPasskey + "))"

	removeCodes = "DELETE FROM recovery_codes WHERE user_id = ?1 AND (" + aPassword + " OR " + aProvider + ") OR " +
		aPasskey + "))"
)

// RemoveWay implements storage.WayEnds.
func (s *Store) RemoveWay(ctx context.Context, userID, id string, by storage.Admission, in storage.Hash) error {
	return s.change(ctx, "RemoveWay", userID, in, func(c *conn) error {
		n, err := c.exec(removeWay, append(letIn(userID, by), id)...)
		return lastOf(c, n, err, "SELECT 1 FROM ways WHERE user_id = ? AND id = ?", userID, id)
	})
}

// RemovePassword implements storage.WayEnds.
func (s *Store) RemovePassword(ctx context.Context, userID string, by storage.Admission, in storage.Hash) error {
	return s.change(ctx, "RemovePassword", userID, in, func(c *conn) error {
		n, err := c.exec(removePassword, letIn(userID, by)[:3]...)
		return lastOf(c, n, err, "SELECT 1 FROM users WHERE id = ? AND password_hash <> ''", userID)
	})
}

// RemoveRecoveryCodes implements storage.WayEnds.
func (s *Store) RemoveRecoveryCodes(ctx context.Context, userID string, by storage.Admission, in storage.Hash) error {
	return s.change(ctx, "RemoveRecoveryCodes", userID, in, func(c *conn) error {
		n, err := c.exec(removeCodes, letIn(userID, by)...)
		return lastOf(c, n, err, "SELECT 1 FROM recovery_codes WHERE user_id = ? LIMIT 1", userID)
	})
}

// letIn returns the first parameters of the statements about these methods. The last one is about
// passwords.
func letIn(userID string, by storage.Admission) []any {
	return []any{userID, column.List(by.RPIDs), column.List(by.Providers), by.Passwords}
}

// lastOf returns why a statement removed no authentication method: ErrLast if it exists, otherwise
// ErrNotFound.
func lastOf(c *conn, n int64, err error, there string, args ...any) error {
	if err != nil || n > 0 {
		return err
	}
	var one int
	if err := c.one([]any{&one}, there, args...); err != nil {
		return err
	}
	return storage.ErrLast
}

const factors = `SELECT u.password_hash <> '' AND ?4,
	(SELECT count(*) FROM ways WHERE user_id = ?1 AND kind = 'passkey' AND rp_id IN (SELECT value FROM json_each(?2))),
	(SELECT count(*) FROM ways WHERE user_id = ?1 AND kind = 'app'),
	(SELECT count(*) FROM recovery_codes WHERE user_id = ?1 AND used_at IS NULL),
	(SELECT count(*) FROM identities WHERE user_id = ?1 AND connector IN (SELECT value FROM json_each(?3))),
	EXISTS (SELECT 1 FROM ways w JOIN users u ON u.id = w.user_id WHERE ` + column.HasRole + ` AND NOT u.disabled)
FROM users u WHERE u.id = ?1`

// Factors implements storage.WayEnds.
func (s *Store) Factors(ctx context.Context, userID string, by storage.Admission) (f storage.Factors, err error) {
	err = s.read(ctx, "Factors", func(c *conn) error {
		f = storage.Factors{}
		return c.one(column.FactorsDest(&f), factors, letIn(userID, by)...)
	})
	return f, err
}

// ReplaceRecoveryCodes implements storage.RecoveryCodes.
func (s *Store) ReplaceRecoveryCodes(
	ctx context.Context, userID string, codes []storage.Hash, in storage.Hash,
) error {
	return s.change(ctx, "ReplaceRecoveryCodes", userID, in, func(c *conn) error {
		if err := enabled(c, userID); err != nil {
			return err
		}
		if _, err := c.exec("DELETE FROM recovery_codes WHERE user_id = ?", userID); err != nil {
			return err
		}
		for _, h := range codes {
			if _, err := c.exec("INSERT INTO recovery_codes (user_id, hash) VALUES (?, ?)", userID, h[:]); err != nil {
				return err
			}
		}
		return nil
	})
}

const passkeyHosts = `SELECT w.rp_id, count(*), count(DISTINCT w.user_id), count(DISTINCT CASE WHEN NOT (u.password_hash <> '' AND ?1)
	AND NOT EXISTS (SELECT 1 FROM identities i WHERE i.user_id = u.id AND i.connector IN (SELECT value FROM json_each(?2)))
	AND NOT EXISTS (SELECT 1 FROM ways o WHERE o.user_id = u.id AND o.kind = 'passkey' AND o.rp_id <> w.rp_id) THEN u.id END)
FROM ways w JOIN users u ON u.id = w.user_id WHERE w.kind = 'passkey' GROUP BY w.rp_id ORDER BY w.rp_id`

// PasskeyHosts implements storage.WayCustody.
func (s *Store) PasskeyHosts(ctx context.Context, by storage.Admission) (out []storage.PasskeyHost, err error) {
	err = s.read(ctx, "PasskeyHosts", func(c *conn) (err error) {
		out, err = each(c, func(row scanner) (h storage.PasskeyHost, err error) {
			err = row.Scan(&h.RPID, &h.Passkeys, &h.People, &h.Only)
			return h, err
		}, passkeyHosts, by.Passwords, column.List(by.Providers))
		return err
	})
	return out, err
}
