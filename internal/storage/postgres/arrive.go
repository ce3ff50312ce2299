package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

const (
	// An identity whose user is gone has no owner: the previous version deletes users and knows no
	// identities.
	whose = `SELECT i.user_id FROM identities i JOIN users u ON u.id = i.user_id WHERE i.connector = $1 AND i.subject = $2`

	// admit locks the account against deletion and disabling until its new records are stored, and
	// records the sign-in.
	admit = "UPDATE users SET last_login_at = coalesce($2, last_login_at) WHERE id = $1 AND NOT disabled AND ($3::bigint IS NULL OR coalesce(stopped_at, 0) < $3) RETURNING " +
		column.UserColumns

	tie = "INSERT INTO identities AS i (" + column.IdentityColumns + `) VALUES ($1,$2,$3,$4,$5,$6,$7)
ON CONFLICT (connector, subject) DO UPDATE SET began = CASE WHEN i.user_id = excluded.user_id THEN i.began ELSE excluded.began END,
	user_id = excluded.user_id, label = excluded.label, last_used_at = excluded.last_used_at
WHERE i.user_id = excluded.user_id OR NOT EXISTS (SELECT 1 FROM users u WHERE u.id = i.user_id)`

	// signInWith records that an identity is used. It does not restore one that was unlinked
	// meanwhile.
	signInWith = `UPDATE identities SET label = $4, last_used_at = $5
WHERE connector = $1 AND subject = $2 AND user_id = $3`

	insertUpstream = "INSERT INTO upstreams (" + column.UpstreamColumns +
		") VALUES ($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12,$13,$14)"

	lockLinked = `SELECT count(*) FROM (SELECT id FROM upstreams WHERE linked AND connector = $1 AND user_id = $2
	AND ended_at IS NULL ORDER BY id FOR UPDATE) l`

	// onPredecessor is the condition for records that depend on a linked session with the same
	// provider account.
	onPredecessor = `upstream_id IS NOT NULL AND upstream_id IN (SELECT id FROM upstreams
	WHERE linked AND connector = $2 AND subject = $3 AND user_id = $4 AND ended_at IS NULL)`

	// moveSessions waits for running approvals, each of which locks its session (see approveHead).
	// moveGrants then sees their grants.
	moveSessions = `WITH held AS (SELECT hash FROM sessions WHERE ` + onPredecessor + ` ORDER BY hash FOR UPDATE)
UPDATE sessions s SET upstream_id = $1 FROM held WHERE s.hash = held.hash`
	moveGrants = "UPDATE grants SET upstream_id = $1 WHERE " + onPredecessor + " AND revoked_at IS NULL"

	// beganElsewhere: the account began with another identity, so new sessions depend on that.
	beganElsewhere = column.HomeIdentity + "$1 AND (h.connector <> $2 OR h.subject <> $3)"

	insertSession = "INSERT INTO sessions (" + column.SessionInsert +
		") VALUES ($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11)"
)

// Arrive implements storage.Arrivals. It locks the account, and uses the order of a deletion:
// account, identity, provider sessions, browser sessions.
func (s *Store) Arrive(ctx context.Context, a storage.Arrival) (out storage.User, err error) {
	err = s.tx(ctx, "Arrive", func(ctx context.Context, q querier) error {
		id, made, err := arriving(ctx, q, a)
		if err != nil && !errors.Is(err, storage.ErrUntied) {
			return err
		}
		untied := err
		if out, err = admitted(ctx, q, a, id); err != nil {
			return err
		}
		if untied != nil {
			return untied
		}
		if err := changed(errAgain)(use(ctx, q, a, id, made)); err != nil {
			return err
		}
		return begin(ctx, q, a, id)
	})
	if err != nil {
		return storage.User{}, err
	}
	return out, nil
}

// use stores the identity of a user: used for sign-in, linked, or of a new user.
func use(ctx context.Context, q querier, a storage.Arrival, userID string, made bool) (int64, error) {
	i := a.Identity
	if i.UserID == "" && !made {
		return exec(ctx, q, signInWith, i.Connector, i.Subject, userID, i.Label, column.Millis(a.Now))
	}
	return exec(ctx, q, tie, column.IdentityValues(i, userID, made, a.Now)...)
}

// arriving returns the id of the user who signs in, and creates the user if no user has the
// identity. With ErrUntied, it returns the id of the user to ask.
func arriving(ctx context.Context, q querier, a storage.Arrival) (id string, made bool, err error) {
	var owner string
	err = one(ctx, q, []any{&owner}, whose, a.Identity.Connector, a.Identity.Subject)
	unknown := errors.Is(err, pgx.ErrNoRows)
	switch wanted := a.Identity.UserID; {
	case err != nil && !unknown:
		return "", false, err
	case wanted == "" && !unknown:
		return owner, false, nil
	case wanted != "" && !unknown && owner != wanted:
		return "", false, storage.ErrExists
	case wanted != "" && unknown && !a.Asked:
		return wanted, false, storage.ErrUntied
	case wanted != "":
		return wanted, false, nil
	case a.NewUser == nil:
		return "", false, storage.ErrNotFound
	}
	return a.NewUser.ID, true, createArrival(ctx, q, a)
}

// createArrival creates the new user, under another name if theirs is taken. The id of a new user
// belongs to the identity. If the id is stored although no user has the identity, an earlier
// version has unlinked it, and the sign-in is refused.
func createArrival(ctx context.Context, q querier, a storage.Arrival) error {
	u := *a.NewUser
	if u.Role == storage.Administrator {
		if _, err := lockSetup(ctx, q); err != nil {
			return err
		}
	}
	for _, name := range []string{u.Name, column.OtherName(u)} {
		u.Name = name
		if n, err := putUser(ctx, q, u); err != nil || n > 0 {
			return err
		}
		var known, tied bool
		err := one(ctx, q, []any{&known, &tied},
			"SELECT EXISTS (SELECT 1 FROM users WHERE id = $3), EXISTS ("+whose+")",
			a.Identity.Connector, a.Identity.Subject, u.ID)
		switch {
		case err != nil:
			return err
		case tied:
			return errAgain // created by a concurrent arrival
		case known:
			return storage.ErrExists
		}
	}
	return storage.ErrExists
}

func admitted(ctx context.Context, q querier, a storage.Arrival, id string) (storage.User, error) {
	var r column.UserRow
	var login *int64
	if a.Session != nil {
		login = column.OptMillis(a.Now)
	}
	err := one(ctx, q, r.Dest(), admit, id, login, column.OptMillis(a.LeftAt))
	if !errors.Is(err, pgx.ErrNoRows) {
		return r.User(), err
	}
	var disabled, stopped bool
	err = one(ctx, q, []any{&disabled, &stopped},
		"SELECT disabled, $2::bigint IS NOT NULL AND coalesce(stopped_at, 0) >= $2 FROM users WHERE id = $1",
		id, column.OptMillis(a.LeftAt))
	switch {
	case err == nil && stopped && !disabled:
		return storage.User{}, storage.ErrStopped
	case errors.Is(err, pgx.ErrNoRows) && a.Identity.UserID != "":
		return storage.User{}, storage.ErrNotFound
	case errors.Is(err, pgx.ErrNoRows), err == nil && !disabled:
		return storage.User{}, errAgain // deleted or enabled concurrently
	case err != nil:
		return storage.User{}, err
	}
	return storage.User{}, storage.ErrRevoked
}

// begin stores the provider session and the browser session.
func begin(ctx context.Context, q querier, a storage.Arrival, userID string) error {
	u, err := column.Arriving(a, userID)
	if err != nil {
		return err
	}
	if u.Linked {
		if err := replaceLinked(ctx, q, u, a.Now); err != nil {
			return err
		}
	}
	if _, err := q.Exec(ctx, insertUpstream, column.UpstreamValues(u)...); err != nil || a.Session == nil {
		return err
	}
	se := *a.Session
	se.UserID, se.UpstreamID = userID, u.ID
	err = one(ctx, q, []any{new(int)}, beganElsewhere, userID, a.Identity.Connector, a.Identity.Subject)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		_, err = q.Exec(ctx, insertSession, column.SessionValues(se)...)
		return err
	case err != nil:
		return err
	}
	se.UpstreamID = ""
	return changed(storage.ErrHomeProvider)(exec(ctx, q, putSession, append(column.SessionValues(se), "", nil)...))
}

// replaceLinked ends the linked sessions that u replaces. Records that depend on one with the same
// provider account depend on u from now on, so a user who extends access stays signed in. Like
// endUpstreams, it locks the sessions before the records that depend on them.
func replaceLinked(ctx context.Context, q querier, u storage.Upstream, now time.Time) error {
	moved := []any{u.ID, u.Connector, u.Subject, u.UserID}
	err := all(ctx, q,
		statement{lockLinked, []any{u.Connector, u.UserID}},
		statement{moveSessions, moved},
		statement{moveGrants, moved},
	)
	if err != nil {
		return err
	}
	_, err = endUpstreams(ctx, q, "linked AND connector = $1 AND user_id = $2", []any{u.Connector, u.UserID},
		column.Replaced, now)
	return err
}
