package sqlite

import (
	"cmp"
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/portable"
)

const putSession = "WITH home_session AS (" + homeSession + ") INSERT INTO sessions (" + column.SessionInsert + `)
SELECT ?1, id, ?3, ?4, ?5, (SELECT id FROM home_session), ?7, ?8, ?9, ?10, ?11 FROM users
WHERE id = ?2 AND NOT disabled AND (?12 = '' OR password_hash = ?12) AND (?13 IS NULL OR coalesce(stopped_at, 0) < ?13)
	AND (EXISTS (SELECT 1 FROM home_session) OR ?6 IS NULL AND NOT EXISTS (` + column.HomeIdentity + "?2))"

// homeSession selects the provider session that a session of the user ?2 depends on: ?6 if it is
// given. In an account that began at a provider, it must be a session there. Sign-in sessions are
// preferred to linked ones, which live until the next is linked.
const homeSession = `SELECT p.id FROM upstreams p WHERE p.user_id = ?2 AND p.ended_at IS NULL AND (?6 IS NULL OR p.id = ?6)
	AND (EXISTS (` + column.HomeIdentity + "?2 AND h.connector = p.connector AND h.subject = p.subject) OR ?6 IS NOT NULL AND NOT EXISTS (" +
	column.HomeIdentity + `?2))
ORDER BY p.linked, p.created_at DESC, p.id DESC LIMIT 1`

// wouldRest selects the session that a session of the user ?1 would depend on, and whether the
// account needs one.
const wouldRest = `SELECT (SELECT p.id FROM upstreams p WHERE p.user_id = ?1 AND p.ended_at IS NULL
	AND EXISTS (` + column.HomeIdentity + `?1 AND h.connector = p.connector AND h.subject = p.subject)
	ORDER BY p.linked, p.created_at DESC, p.id DESC LIMIT 1), EXISTS (` + column.HomeIdentity + "?1)"

const withoutHome = column.HomeIdentity + "?1 AND NOT o.disabled AND (?2 = '' OR o.password_hash = ?2)" +
	" AND (?3 IS NULL OR coalesce(o.stopped_at, 0) < ?3)"

// PutSession implements storage.Sessions.
func (s *Store) PutSession(ctx context.Context, se storage.Session, by storage.SignInStart) error {
	return s.write(ctx, "PutSession", func(c *conn) error {
		n, err := c.exec(putSession, append(column.SessionValues(se), by.PasswordHash, column.OptMillis(by.At))...)
		switch {
		case err != nil:
			return err
		case n > 0 && by.RecoveryCode != nil:
			return portable.SpendCode(portableConn{c}, se.UserID, *by.RecoveryCode, se.CreatedAt)
		case n > 0:
			return nil
		}
		err = c.one([]any{new(int)}, withoutHome, se.UserID, by.PasswordHash, column.OptMillis(by.At))
		if err != nil || se.UpstreamID != "" {
			return cmp.Or(err, storage.ErrNotFound)
		}
		return storage.ErrHomeProvider
	})
}

// HomeSession implements storage.Sessions.
func (s *Store) HomeSession(ctx context.Context, userID string) (id string, err error) {
	err = s.read(ctx, "HomeSession", func(c *conn) error {
		var found *string
		var began bool
		err := c.one([]any{&found, &began}, wouldRest, userID)
		switch {
		case err != nil:
			return err
		case found != nil:
			id = *found
		case began:
			return storage.ErrHomeProvider
		}
		return nil
	})
	return id, err
}

const visit = `SELECT u.id, u.name, u.password_hash, u.admin, u.disabled, u.created_at, u.last_login_at, u.mail, u.locale, u.role,
	` + column.SessionColumns + `,
	(SELECT json_group_array(CASE WHEN resource = ?3 THEN scope END ORDER BY created_at, scope) FROM consents c
		WHERE user_id = u.id AND client_id = ?2 AND (place = ?5 AND material = ?6 OR place = '' AND ?7)
		AND NOT ` + column.IsForgotten + `)
FROM sessions s JOIN users u ON u.id = s.user_id
WHERE s.hash = ?1 AND s.expires_at > ?4 AND NOT u.disabled AND NOT ` + column.IsSignedOut

// Visit implements storage.Sessions.
func (s *Store) Visit(ctx context.Context, k storage.VisitKey) (out storage.Visit, err error) {
	err = s.read(ctx, "Visit", func(c *conn) error {
		var u column.UserRow
		var se column.SessionRow
		var scopes string
		err := c.one(append(append(u.Dest(), se.Dest()...), &scopes), visit,
			k.Session[:], k.ClientID, k.Resource, column.Millis(k.Now), k.Place, k.Material[:], k.Unplaced)
		if err != nil {
			return err
		}
		all, err := column.ParseList[*string](scopes) // nil: of another resource
		if err != nil {
			return err
		}
		out = storage.Visit{User: u.User(), Known: len(all) > 0, Consented: column.Consented(present(all))}
		out.Session, err = se.Session()
		return err
	})
	return out, err
}

func present(list []*string) (out []string) {
	for _, s := range list {
		if s != nil {
			out = append(out, *s)
		}
	}
	return out
}

// EndSession implements storage.Sessions.
func (s *Store) EndSession(ctx context.Context, h storage.Hash, now time.Time) error {
	return s.write(ctx, "EndSession", func(c *conn) error { return endSession(c, h, now) })
}

func endSession(c *conn, h storage.Hash, now time.Time) error {
	var upstream *string
	err := c.one([]any{&upstream}, "DELETE FROM sessions WHERE hash = ? RETURNING upstream_id", h[:])
	if err != nil || upstream == nil {
		return ignore(err, storage.ErrNotFound)
	}
	const alone = "id = (SELECT id FROM upstreams u WHERE u.id = ?2"
	return all(
		handOver(c, alone+unused("?3")+")", now, *upstream, column.Millis(now)),
		run(c, "UPDATE upstreams SET sealed = NULL, claimed_until = NULL, ended_at = ?1, end_reason = ?3 WHERE "+
			alone+unused("?1")+")",
			column.Millis(now), *upstream, column.SignedOut),
	)
}
