package sqlite

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/storage"
	"github.com/mcp-authd/mcp-authd/storage/internal/column"
)

const (
	// connected is the condition that the grant g is a live one of a person, ?1, at ?2.
	connected = `g.user_id = ?1 AND g.revoked_at IS NULL AND g.code_used_at IS NOT NULL AND g.expires_at > ?2 AND NOT ` + isCut

	selectConnections = "SELECT " + column.ConnectionRead + " FROM grants g WHERE " + connected

	// The index begins with a part of the id of the person, and goes on in the order of the grants' ids.
	pageConnections = selectConnections + ` AND NOT g.for_program AND substr(user_id, -8) = substr(?1, -8)
	AND (?3 = '' OR substr(id, 1, 11) <= substr(?3, 1, 11) AND id < ?3) ORDER BY substr(id, 1, 11) DESC, id DESC LIMIT ?4`
)

// Connections implements storage.Connections.
func (s *Store) Connections(
	ctx context.Context, userID, before string, now time.Time, limit int,
) (out []storage.Connection, err error) {
	err = s.read(ctx, "connections", func(c *conn) error {
		out, err = each(c, scanConnection, pageConnections, userID, column.Millis(now), before, max(limit, 0))
		return err
	})
	return out, err
}

func scanConnection(row scanner) (storage.Connection, error) {
	var r column.ConnectionRow
	if err := row.Scan(r.Dest()...); err != nil {
		return storage.Connection{}, err
	}
	return r.Connection()
}

// Connection implements storage.Connections.
func (s *Store) Connection(
	ctx context.Context, userID, id string, now time.Time,
) (out storage.Connection, err error) {
	err = s.read(ctx, "connection", func(c *conn) error {
		out, err = connection(c, userID, id, now)
		return err
	})
	return out, err
}

func connection(c *conn, userID, id string, now time.Time) (storage.Connection, error) {
	var r column.ConnectionRow
	if err := c.one(r.Dest(), selectConnections+" AND g.id = ?3", userID, column.Millis(now), id); err != nil {
		return storage.Connection{}, err
	}
	return r.Connection()
}

// NarrowGrant implements storage.Connections.
func (s *Store) NarrowGrant(ctx context.Context, userID, id string, to oauth.Scopes, now time.Time) error {
	return s.write(ctx, "narrow grant", func(c *conn) error {
		g, err := connection(c, userID, id, now)
		if err != nil {
			return err
		}
		gone, err := column.Narrowing(g.Grant, to)
		if err != nil || len(gone) == 0 {
			return err
		}
		return all(
			run(c, "UPDATE grants SET scopes = ?, narrowed_at = ? WHERE id = ?", column.List(g.Scopes.Without(gone)),
				column.Millis(now), id),
			run(c, `DELETE FROM consents WHERE user_id = ? AND client_id = ? AND resource = ?
				AND scope IN (SELECT value FROM json_each(?))`, g.UserID, g.ClientID, g.Resource, column.List(gone)),
		)
	})
}

// PauseGrant implements storage.Connections.
func (s *Store) PauseGrant(ctx context.Context, userID, id string, now time.Time) error {
	return s.write(ctx, "pause grant", func(c *conn) error {
		return changed(storage.ErrNotFound)(c.exec(
			"UPDATE grants AS g SET paused_at = coalesce(paused_at, ?2) WHERE "+connected+" AND id = ?3",
			userID, column.Millis(now), id))
	})
}

// ResumeGrant implements storage.Connections.
func (s *Store) ResumeGrant(ctx context.Context, userID, id string, now time.Time) error {
	return s.write(ctx, "resume grant", func(c *conn) error {
		return changed(storage.ErrNotFound)(c.exec(
			"UPDATE grants AS g SET paused_at = NULL WHERE "+connected+" AND id = ?3",
			userID, column.Millis(now), id))
	})
}

// StopEverything implements storage.Stops.
func (s *Store) StopEverything(ctx context.Context, userID string, now time.Time) error {
	return s.write(ctx, "stop everything", func(c *conn) error {
		return all(
			run(c, "UPDATE users SET stopped_at = max(coalesce(stopped_at, 0), ?) WHERE id = ?", column.Millis(now), userID),
			eraseOfUser(c, userID, column.SignedOut, now),
			func() error { return cutOff(c, userID, storage.ByPerson, now) },
		)
	})
}
