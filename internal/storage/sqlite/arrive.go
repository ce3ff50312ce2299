package sqlite

import (
	"context"
	"errors"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

const (
	// An identity whose user is gone has no owner: the previous version deletes users and knows no
	// identities.
	whose = `SELECT i.user_id FROM identities i JOIN users u ON u.id = i.user_id WHERE i.connector = ? AND i.subject = ?`

	// admit checks the user and records the sign-in, if there is one.
	admit = "UPDATE users SET last_login_at = coalesce(?2, last_login_at) WHERE id = ?1 AND NOT disabled AND (?3 IS NULL OR coalesce(stopped_at, 0) < ?3) RETURNING " +
		column.UserColumns

	tie = "INSERT INTO identities (" + column.IdentityColumns + `) VALUES (?,?,?,?,?,?,?)
ON CONFLICT (connector, subject) DO UPDATE SET began = CASE WHEN identities.user_id = excluded.user_id THEN identities.began ELSE excluded.began END,
	user_id = excluded.user_id, label = excluded.label, last_used_at = excluded.last_used_at`

	// signInWith records that an identity is used.
	signInWith = `UPDATE identities SET label = ?4, last_used_at = ?5
WHERE connector = ?1 AND subject = ?2 AND user_id = ?3`

	insertUpstream = "INSERT INTO upstreams (" + column.UpstreamColumns + ") VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?)"

	// onPredecessor is the condition for records that depend on a linked session with the same
	// provider account.
	onPredecessor = `upstream_id IN (SELECT id FROM upstreams
	WHERE linked AND connector = ?2 AND subject = ?3 AND user_id = ?4 AND ended_at IS NULL)`

	// beganElsewhere: the account began with another identity, so new sessions depend on that.
	beganElsewhere = column.HomeIdentity + "?1 AND (h.connector <> ?2 OR h.subject <> ?3)"

	insertSession = "INSERT INTO sessions (" + column.SessionInsert + ") VALUES (?,?,?,?,?,?,?,?,?,?,?)"
)

// Arrive implements storage.Arrivals.
func (s *Store) Arrive(ctx context.Context, a storage.Arrival) (storage.User, error) {
	var out storage.User
	err := s.write(ctx, "Arrive", func(c *conn) error {
		id, made, err := arriving(c, a)
		if err != nil && !errors.Is(err, storage.ErrUntied) {
			return err
		}
		untied := err
		if out, err = admitted(c, a, id); err != nil {
			return err
		}
		if untied != nil {
			return untied
		}
		return all(
			use(c, a, id, made),
			func() error { return begin(c, a, id) },
		)
	})
	if err != nil {
		return storage.User{}, err
	}
	return out, nil
}

// use stores the identity of a user: used for sign-in, linked, or of a new user.
func use(c *conn, a storage.Arrival, userID string, made bool) func() error {
	i := a.Identity
	if i.UserID == "" && !made {
		return run(c, signInWith, i.Connector, i.Subject, userID, i.Label, column.Millis(a.Now))
	}
	return run(c, tie, column.IdentityValues(i, userID, made, a.Now)...)
}

// arriving returns the id of the user who signs in, and creates the user if no user has the
// identity. With ErrUntied, it returns the id of the user to ask.
func arriving(c *conn, a storage.Arrival) (id string, made bool, err error) {
	var owner string
	err = c.one([]any{&owner}, whose, a.Identity.Connector, a.Identity.Subject)
	unknown := errors.Is(err, storage.ErrNotFound)
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
	return a.NewUser.ID, true, createArrival(c, *a.NewUser)
}

// createArrival creates the new user, under another name if theirs is taken. The id of a new user
// belongs to the identity. If the id is stored although no user has the identity, an earlier
// version has unlinked it, and the sign-in is refused.
func createArrival(c *conn, u storage.User) error {
	for _, name := range []string{u.Name, column.OtherName(u)} {
		u.Name = name
		if n, err := putUser(c, u); err != nil || n > 0 {
			return err
		}
	}
	return storage.ErrExists
}

func admitted(c *conn, a storage.Arrival, id string) (storage.User, error) {
	var r column.UserRow
	var login *int64
	if a.Session != nil {
		login = column.OptMillis(a.Now)
	}
	err := c.one(r.Dest(), admit, id, login, column.OptMillis(a.LeftAt))
	if !errors.Is(err, storage.ErrNotFound) {
		return r.User(), err
	}
	var disabled bool
	err = c.one([]any{&disabled}, "SELECT disabled FROM users WHERE id = ?", id)
	switch {
	case err != nil:
		return storage.User{}, err
	case !disabled:
		return storage.User{}, storage.ErrStopped
	}
	return storage.User{}, storage.ErrRevoked
}

// begin stores the provider session and the browser session.
func begin(c *conn, a storage.Arrival, userID string) error {
	u, err := column.Arriving(a, userID)
	if err != nil {
		return err
	}
	if u.Linked {
		if err := replaceLinked(c, u, a.Now); err != nil {
			return err
		}
	}
	if _, err := c.exec(insertUpstream, column.UpstreamValues(u)...); err != nil || a.Session == nil {
		return err
	}
	se := *a.Session
	se.UserID, se.UpstreamID = userID, u.ID
	err = c.one([]any{new(int)}, beganElsewhere, userID, a.Identity.Connector, a.Identity.Subject)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		_, err = c.exec(insertSession, column.SessionValues(se)...)
		return err
	case err != nil:
		return err
	}
	se.UpstreamID = ""
	return changed(storage.ErrHomeProvider)(c.exec(putSession, append(column.SessionValues(se), "", nil)...))
}

// replaceLinked ends the linked sessions that u replaces. Records that depend on one with the same
// provider account depend on u from now on, so a user who extends access stays signed in.
func replaceLinked(c *conn, u storage.Upstream, now time.Time) error {
	const moved = " SET upstream_id = ?1 WHERE " + onPredecessor
	args := []any{u.ID, u.Connector, u.Subject, u.UserID}
	err := all(
		run(c, "UPDATE sessions"+moved, args...),
		run(c, "UPDATE grants"+moved+" AND revoked_at IS NULL", args...),
	)
	if err != nil {
		return err
	}
	_, err = endUpstreams(c, "linked AND connector = ? AND user_id = ?", []any{u.Connector, u.UserID},
		column.Replaced, now)
	return err
}
