package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

// Changes to a user's authentication methods lock the account, so that no two of them rely on a
// method that the other removes.
const (
	holdUser    = "SELECT 1 FROM users WHERE id = $1 FOR NO KEY UPDATE"
	holdEnabled = "SELECT 1 FROM users WHERE id = $1 AND NOT disabled FOR NO KEY UPDATE"
)

// held runs fn in a transaction under the lock of an account. It returns ErrNotFound for an unknown
// account.
func (s *Store) held(
	ctx context.Context, what, hold, userID string, fn func(ctx context.Context, q querier) error,
) error {
	return s.tx(ctx, what, func(ctx context.Context, q querier) error {
		var there int
		if err := one(ctx, q, []any{&there}, hold, userID); err != nil {
			return err
		}
		return fn(ctx, q)
	})
}

// while runs fn if in is a live session of the user, or zero. Otherwise it returns
// storage.ErrSignedOut. Every verb that ends all sessions of a user locks the account first, so
// under its lock the session stays.
func while(
	userID string, in storage.Hash, fn func(ctx context.Context, q querier) error,
) func(ctx context.Context, q querier) error {
	if in == (storage.Hash{}) {
		return fn
	}
	return func(ctx context.Context, q querier) error {
		err := one(ctx, q, []any{new(int)}, "SELECT 1 FROM sessions s WHERE s.hash = $1 AND s.user_id = $2 AND NOT "+
			column.IsSignedOut, in[:], userID)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return storage.ErrSignedOut
		case err != nil:
			return err
		}
		return fn(ctx, q)
	}
}

const insertWay = "INSERT INTO ways (" + column.WayColumns + `) SELECT $1,$2,$3,$4,$5,$6,$7,$8,$9,$10
WHERE (SELECT count(*) FROM ways WHERE user_id = $2) < $11
	AND ($3 <> 'app' OR (SELECT count(*) FROM ways WHERE user_id = $2 AND kind = 'app') < $12)`

func wayValues(w storage.Way) []any {
	return append(column.WayValues(w), storage.MaxWays, storage.MaxApps)
}

// AddWay implements storage.Ways.
func (s *Store) AddWay(ctx context.Context, w storage.Way, in storage.Hash) error {
	add := func(ctx context.Context, q querier) error {
		return changed(storage.ErrFull)(exec(ctx, q, insertWay, wayValues(w)...))
	}
	return s.held(ctx, "AddWay", holdEnabled, w.UserID, while(w.UserID, in, add))
}

// PasskeyOwner implements storage.Ways.
func (s *Store) PasskeyOwner(
	ctx context.Context, credentialID []byte,
) (way storage.Way, user storage.User, err error) {
	err = s.do(ctx, "PasskeyOwner", func(ctx context.Context, q querier) error {
		var w column.WayRow
		var u column.UserRow
		err := one(ctx, q, append(w.Dest(), u.Dest()...), passkeyOwner, credentialID)
		if err == nil {
			way, user = w.Way(), u.User()
		}
		return err
	})
	return way, user, err
}

const passkeyOwner = "SELECT w.*, u.* FROM (SELECT " + column.WayColumns +
	" FROM ways WHERE credential_id = $1) w JOIN (SELECT " + column.UserColumns + " FROM users) u ON u.id = w.user_id"

// RenameWay implements storage.Ways.
func (s *Store) RenameWay(
	ctx context.Context, userID, id, name string, in storage.Hash,
) (before string, err error) {
	rename := func(ctx context.Context, q querier) error {
		err := one(ctx, q, []any{&before}, "SELECT name FROM ways WHERE id = $1 AND user_id = $2", id, userID)
		if err == nil {
			_, err = exec(ctx, q, "UPDATE ways SET name = $1 WHERE id = $2", name, id)
		}
		return err
	}
	err = s.held(ctx, "RenameWay", holdUser, userID, while(userID, in, rename))
	return before, err
}

// The methods that are enough for a user $1 to sign in: a passkey of the relying parties $2, an
// account at the providers $3, a password if $4.
const (
	aPassword = "EXISTS (SELECT 1 FROM users WHERE id = $1 AND password_hash <> '' AND $4)"
	aProvider = "EXISTS (SELECT 1 FROM identities WHERE user_id = $1 AND connector = ANY($3)"
	aPasskey  = "EXISTS (SELECT 1 FROM ways WHERE user_id = $1 AND kind = 'passkey' AND rp_id = ANY($2)"

	removeWay = `DELETE FROM ways WHERE user_id = $1 AND id = $5 AND (kind <> 'passkey' OR ` + aPassword + " OR " + aProvider +
		") OR " + aPasskey + " AND id <> $5))"
	removePassword = "UPDATE users SET password_hash = '' WHERE id = $1 AND password_hash <> '' AND (" + aProvider + ") OR " +
		aPasskey + "))"

	removeCodes = "DELETE FROM recovery_codes WHERE user_id = $1 AND (" + aPassword + " OR " + aProvider + ") OR " +
		aPasskey + "))"
)

// RemoveWay implements storage.WayEnds.
func (s *Store) RemoveWay(ctx context.Context, userID, id string, by storage.Admission, in storage.Hash) error {
	remove := func(ctx context.Context, q querier) error {
		n, err := exec(ctx, q, removeWay, append(letIn(userID, by), id)...)
		return lastOf(ctx, q, n, err, "SELECT 1 FROM ways WHERE user_id = $1 AND id = $2", userID, id)
	}
	return s.held(ctx, "RemoveWay", holdUser, userID, while(userID, in, remove))
}

// letIn returns the first parameters of the statements about these methods. The last one is about
// passwords.
func letIn(userID string, by storage.Admission) []any {
	return []any{userID, list(by.RPIDs), list(by.Providers), by.Passwords}
}

// list returns a list that is not NULL in the database.
func list(values []string) []string { return append([]string{}, values...) }

// RemovePassword implements storage.WayEnds.
func (s *Store) RemovePassword(ctx context.Context, userID string, by storage.Admission, in storage.Hash) error {
	remove := func(ctx context.Context, q querier) error {
		n, err := exec(ctx, q, removePassword, letIn(userID, by)[:3]...)
		return lastOf(ctx, q, n, err, "SELECT 1 FROM users WHERE id = $1 AND password_hash <> ''", userID)
	}
	return s.held(ctx, "RemovePassword", holdUser, userID, while(userID, in, remove))
}

// RemoveRecoveryCodes implements storage.WayEnds.
func (s *Store) RemoveRecoveryCodes(ctx context.Context, userID string, by storage.Admission, in storage.Hash) error {
	remove := func(ctx context.Context, q querier) error {
		n, err := exec(ctx, q, removeCodes, letIn(userID, by)...)
		return lastOf(ctx, q, n, err, "SELECT 1 FROM recovery_codes WHERE user_id = $1 LIMIT 1", userID)
	}
	return s.held(ctx, "RemoveRecoveryCodes", holdUser, userID, while(userID, in, remove))
}

// lastOf returns why a statement removed no authentication method: ErrLast if it exists, otherwise
// ErrNotFound.
func lastOf(ctx context.Context, q querier, n int64, err error, there string, args ...any) error {
	if err != nil || n > 0 {
		return err
	}
	var is int
	if err := one(ctx, q, []any{&is}, there, args...); err != nil {
		return err
	}
	return storage.ErrLast
}

const factors = `SELECT u.password_hash <> '' AND $4,
	(SELECT count(*) FROM ways WHERE user_id = $1 AND kind = 'passkey' AND rp_id = ANY($2)),
	(SELECT count(*) FROM ways WHERE user_id = $1 AND kind = 'app'),
	(SELECT count(*) FROM recovery_codes WHERE user_id = $1 AND used_at IS NULL),
	(SELECT count(*) FROM identities WHERE user_id = $1 AND connector = ANY($3)),
	EXISTS (SELECT 1 FROM ways w JOIN users u ON u.id = w.user_id WHERE ` + column.HasRole + ` AND NOT u.disabled)
FROM users u WHERE u.id = $1`

// Factors implements storage.WayEnds.
func (s *Store) Factors(ctx context.Context, userID string, by storage.Admission) (f storage.Factors, err error) {
	err = s.do(ctx, "Factors", func(ctx context.Context, q querier) error {
		f = storage.Factors{}
		return one(ctx, q, column.FactorsDest(&f), factors, letIn(userID, by)...)
	})
	return f, err
}

// ReplaceRecoveryCodes implements storage.RecoveryCodes.
func (s *Store) ReplaceRecoveryCodes(
	ctx context.Context, userID string, codes []storage.Hash, in storage.Hash,
) error {
	hashes := make([][]byte, len(codes))
	for i := range codes {
		hashes[i] = codes[i][:]
	}
	replace := func(ctx context.Context, q querier) error {
		return all(ctx, q,
			statement{"DELETE FROM recovery_codes WHERE user_id = $1", []any{userID}},
			statement{"INSERT INTO recovery_codes (user_id, hash) SELECT $1, unnest($2::bytea[])", []any{userID, hashes}},
		)
	}
	return s.held(ctx, "ReplaceRecoveryCodes", holdEnabled, userID, while(userID, in, replace))
}

const passkeyHosts = `SELECT w.rp_id, count(*), count(DISTINCT w.user_id), count(DISTINCT u.id) FILTER (WHERE NOT (u.password_hash <> '' AND $1)
	AND NOT EXISTS (SELECT 1 FROM identities i WHERE i.user_id = u.id AND i.connector = ANY($2))
	AND NOT EXISTS (SELECT 1 FROM ways o WHERE o.user_id = u.id AND o.kind = 'passkey' AND o.rp_id <> w.rp_id))
FROM ways w JOIN users u ON u.id = w.user_id WHERE w.kind = 'passkey' GROUP BY w.rp_id ORDER BY w.rp_id`

// PasskeyHosts implements storage.WayCustody.
func (s *Store) PasskeyHosts(ctx context.Context, by storage.Admission) (out []storage.PasskeyHost, err error) {
	err = s.do(ctx, "PasskeyHosts", func(ctx context.Context, q querier) (err error) {
		out, err = each(ctx, q, func(row pgx.CollectableRow) (h storage.PasskeyHost, err error) {
			err = row.Scan(&h.RPID, &h.Passkeys, &h.People, &h.Only)
			return h, err
		}, passkeyHosts, by.Passwords, list(by.Providers))
		return err
	})
	return out, err
}
