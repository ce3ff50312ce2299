package sqlite

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

// putUser inserts an account and returns the number of rows: 0 if its id or name is taken.
func putUser(c *conn, u storage.User) (int64, error) {
	n, err := c.exec("INSERT INTO users ("+column.UserColumns+
		", name_key) VALUES (?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT DO NOTHING", column.UserValues(u)...)
	if err != nil || n == 0 {
		return 0, err
	}
	return n, deleteOfUser(c, u.ID)
}

// deleteOfUser deletes a user's authentication methods, notices and links. It runs when an account
// is deleted, and also when one begins: an earlier version leaves them behind, and a user who comes
// back from a provider has the same id.
func deleteOfUser(c *conn, userID string) error {
	return all(
		run(c, "DELETE FROM ways WHERE user_id = ?", userID),
		run(c, "DELETE FROM recovery_codes WHERE user_id = ?", userID),
		run(c, "DELETE FROM notices WHERE user_id = ?", userID),
		run(c, "DELETE FROM one_time_links WHERE user_id = ?", userID),
		run(c, "DELETE FROM trust_links WHERE user_id = ?", userID),
		run(c, "DELETE FROM pauses WHERE user_id = ?", userID),
	)
}

// CreateUser implements storage.Accounts.
func (s *Store) CreateUser(ctx context.Context, u storage.User) error {
	return s.write(ctx, "CreateUser", func(c *conn) error {
		return changed(storage.ErrExists)(putUser(c, u))
	})
}

// SetPassword implements storage.Accounts.
func (s *Store) SetPassword(ctx context.Context, userID, hash string, revokeGrants bool, now time.Time) error {
	return s.write(ctx, "SetPassword", func(c *conn) error { return setPassword(c, userID, hash, revokeGrants, now) })
}

// ChangePassword implements storage.Accounts.
func (s *Store) ChangePassword(
	ctx context.Context, userID, hash string, in storage.Hash, now time.Time,
) error {
	return s.change(ctx, "ChangePassword", userID, in, func(c *conn) error {
		return setPassword(c, userID, hash, false, now)
	})
}

func setPassword(c *conn, userID, hash string, revokeGrants bool, now time.Time) error {
	err := changed(storage.ErrNotFound)(c.exec("UPDATE users SET password_hash = ? WHERE id = ?", hash, userID))
	if err != nil {
		return err
	}
	return cutOff(c, userID, passwordCut(revokeGrants), now)
}

// SetUserDisabled implements storage.Accounts.
func (s *Store) SetUserDisabled(ctx context.Context, userID string, disabled bool, now time.Time) error {
	return s.write(ctx, "SetUserDisabled", func(c *conn) error {
		err := changed(storage.ErrNotFound)(c.exec("UPDATE users SET disabled = ? WHERE id = ?", disabled, userID))
		if err != nil || !disabled {
			return err
		}
		return all(
			eraseOfUser(c, userID, column.Disabled, now),
			run(c, "DELETE FROM one_time_links WHERE user_id = ?", userID),
			func() error { return cutOff(c, userID, storage.ByDisabled, now) },
		)
	})
}

// DeleteUser implements storage.Accounts.
func (s *Store) DeleteUser(ctx context.Context, userID string, now time.Time) error {
	return s.write(ctx, "DeleteUser", func(c *conn) error {
		err := changed(storage.ErrNotFound)(c.exec("DELETE FROM users WHERE id = ?", userID))
		if err != nil {
			return err
		}
		return all(
			run(c, "DELETE FROM identities WHERE user_id = ?", userID),
			func() error { return deleteOfUser(c, userID) },
			eraseOfUser(c, userID, column.Disabled, now),
			// The provider's names of a deleted user are not kept.
			run(c, "UPDATE upstreams SET subject = '', session_id = NULL WHERE user_id = ?", userID),
			func() error { return cutOff(c, userID, storage.ByUserDeleted, now) },
		)
	})
}

// cutOff ends the sessions of a user, and the password reset links. If by is a reason, it also ends
// their grants, consents and sign-ins in progress.
func cutOff(c *conn, userID string, by storage.RevokedBy, now time.Time) error {
	err := all(
		run(c, "DELETE FROM sessions WHERE user_id = ?", userID),
		endResets(c, userID),
	)
	if err != nil || by == "" {
		return err
	}
	sel := storage.Selection{UserID: userID}
	return all(
		run(c, "UPDATE users SET stopped_at = max(coalesce(stopped_at, 0), ?) WHERE id = ?", column.Millis(now), userID),
		noteCut(c, sel, now),
		func() error { return cut(c, sel, by, now) },
	)
}

// endResets ends the password reset links. Recovery links stay: an administrator sends them to the
// account's owner.
func endResets(c *conn, userID string) func() error {
	return run(c, "DELETE FROM one_time_links WHERE user_id = ? AND kind = ?", userID, string(storage.LinkReset))
}

// passwordCut returns why a new password ends grants, "" if they are kept.
func passwordCut(revokeGrants bool) storage.RevokedBy {
	if revokeGrants {
		return storage.ByPassword
	}
	return ""
}

// SetMail implements storage.Accounts.
func (s *Store) SetMail(ctx context.Context, userID, mail string) error {
	return s.write(ctx, "SetMail", func(c *conn) error {
		return all(
			func() error {
				return changed(storage.ErrNotFound)(c.exec("UPDATE users SET mail = ? WHERE id = ?", mail, userID))
			},
			endResets(c, userID), // they were sent to the previous address
		)
	})
}
