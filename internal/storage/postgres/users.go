package postgres

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

// putUser inserts an account and returns the number of rows: 0 if its id or name is taken.
func putUser(ctx context.Context, q querier, u storage.User) (int64, error) {
	n, err := exec(ctx, q, "INSERT INTO users ("+column.UserColumns+
		", name_key) VALUES ($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11) ON CONFLICT DO NOTHING", column.UserValues(u)...)
	if err != nil || n == 0 {
		return 0, err
	}
	return n, all(ctx, q, deleteOfUser(u.ID)...)
}

// deleteOfUser deletes a user's authentication methods, notices and links. It runs when an account
// is deleted, and also when one begins: a replica of an earlier version leaves them behind, and a
// user who comes back from a provider has the same id.
func deleteOfUser(userID string) []statement {
	return []statement{
		{"DELETE FROM ways WHERE user_id = $1", []any{userID}},
		{"DELETE FROM recovery_codes WHERE user_id = $1", []any{userID}},
		{"DELETE FROM notices WHERE user_id = $1", []any{userID}},
		{"DELETE FROM one_time_links WHERE user_id = $1", []any{userID}},
		{"DELETE FROM trust_links WHERE user_id = $1", []any{userID}},
		{"DELETE FROM pauses WHERE user_id = $1", []any{userID}},
	}
}

// CreateUser implements storage.Accounts. It creates an administrator under the setup's lock, so
// that no setup link can still be used afterwards.
func (s *Store) CreateUser(ctx context.Context, u storage.User) error {
	return s.tx(ctx, "CreateUser", func(ctx context.Context, q querier) error {
		if u.Role == storage.Administrator {
			if _, err := lockSetup(ctx, q); err != nil {
				return err
			}
		}
		return changed(storage.ErrExists)(putUser(ctx, q, u))
	})
}

// SetPassword implements storage.Accounts.
func (s *Store) SetPassword(ctx context.Context, userID, hash string, revokeGrants bool, now time.Time) error {
	return s.tx(ctx, "SetPassword", func(ctx context.Context, q querier) error {
		return setPassword(ctx, q, userID, hash, revokeGrants, now)
	})
}

// ChangePassword implements storage.Accounts.
func (s *Store) ChangePassword(
	ctx context.Context, userID, hash string, in storage.Hash, now time.Time,
) error {
	set := func(ctx context.Context, q querier) error { return setPassword(ctx, q, userID, hash, false, now) }
	return s.held(ctx, "ChangePassword", holdUser, userID, while(userID, in, set))
}

func setPassword(ctx context.Context, q querier, userID, hash string, revokeGrants bool, now time.Time) error {
	err := changed(storage.ErrNotFound)(exec(ctx, q, "UPDATE users SET password_hash = $1 WHERE id = $2", hash, userID))
	if err != nil {
		return err
	}
	return cutOff(ctx, q, userID, passwordCut(revokeGrants), now)
}

// SetUserDisabled implements storage.Accounts.
func (s *Store) SetUserDisabled(ctx context.Context, userID string, disabled bool, now time.Time) error {
	return s.txCommitted(ctx, "SetUserDisabled", func(ctx context.Context, q querier) error {
		err := changed(storage.ErrNotFound)(
			exec(ctx, q, "UPDATE users SET disabled = $1 WHERE id = $2", disabled, userID),
		)
		if err != nil || !disabled {
			return err
		}
		err = all(ctx, q, eraseOfUser(userID, column.Disabled, now),
			statement{"DELETE FROM one_time_links WHERE user_id = $1", []any{userID}})
		if err != nil {
			return err
		}
		return cutOff(ctx, q, userID, storage.ByDisabled, now)
	})
}

// DeleteUser implements storage.Accounts.
func (s *Store) DeleteUser(ctx context.Context, userID string, now time.Time) error {
	return s.tx(ctx, "DeleteUser", func(ctx context.Context, q querier) error {
		err := changed(storage.ErrNotFound)(exec(ctx, q, "DELETE FROM users WHERE id = $1", userID))
		if err != nil {
			return err
		}
		if err := all(ctx, q, deleteOfUser(userID)...); err != nil {
			return err
		}
		err = all(ctx, q,
			statement{"DELETE FROM identities WHERE user_id = $1", []any{userID}},
			eraseOfUser(userID, column.Disabled, now),
			// The provider's names of a deleted user are not kept.
			statement{"UPDATE upstreams SET subject = '', session_id = NULL WHERE user_id = $1", []any{userID}},
		)
		if err != nil {
			return err
		}
		return cutOff(ctx, q, userID, storage.ByUserDeleted, now)
	})
}

// cutOff ends the sessions of a user, and the password reset links. If by is a reason, it also ends
// their grants, consents and sign-ins in progress.
//
// The order matters: a running approval locks its session. So once the sessions are deleted, all
// their grants and consents are visible and can be ended. The transaction has locked the account,
// see StopEverything.
func cutOff(ctx context.Context, q querier, userID string, by storage.RevokedBy, now time.Time) error {
	err := all(ctx, q, statement{"DELETE FROM sessions WHERE user_id = $1", []any{userID}}, endResets(userID))
	if err != nil || by == "" {
		return err
	}
	sel := storage.Selection{UserID: userID}
	stop := statement{"UPDATE users SET stopped_at = greatest(stopped_at, $2::bigint) WHERE id = $1",
		[]any{userID, column.Millis(now)}}
	if err := all(ctx, q, append([]statement{stop}, noteCut(sel, now)...)...); err != nil {
		return err
	}
	return cut(ctx, q, sel, by, now)
}

// endResets ends the password reset links. Recovery links stay: an administrator sends them to the
// account's owner.
func endResets(userID string) statement {
	return statement{"DELETE FROM one_time_links WHERE user_id = $1 AND kind = $2",
		[]any{userID, string(storage.LinkReset)}}
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
	return s.tx(ctx, "SetMail", func(ctx context.Context, q querier) error {
		err := changed(storage.ErrNotFound)(exec(ctx, q, "UPDATE users SET mail = $1 WHERE id = $2", mail, userID))
		if err != nil {
			return err
		}
		return all(ctx, q, endResets(userID)) // they were sent to the previous address
	})
}
