package sqlite

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
	"github.com/mcp-authd/mcp-authd/oauth"
)

const (
	// connected is the condition that the grant g is a live one of a user, ?1, at ?2.
	connected = `g.user_id = ?1 AND g.revoked_at IS NULL AND g.code_used_at IS NOT NULL AND g.expires_at > ?2 AND NOT ` + isCut

	// ofConnected is the condition for such grants of an application, ?4, at a resource, ?3.
	ofConnected = connected + ` AND substr(user_id, -8) = substr(?1, -8) AND resource = ?3
	AND client_id IN (SELECT value FROM json_each(?4))`

	selectConnections = "SELECT " + column.ConnectionRead + " FROM grants g WHERE " + connected

	// The index begins with part of the user's id, followed by the grants' ids in order.
	pageConnections = selectConnections + ` AND NOT g.for_program AND substr(user_id, -8) = substr(?1, -8)
	AND (?3 = '' OR substr(id, 1, 11) <= substr(?3, 1, 11) AND id < ?3) ORDER BY substr(id, 1, 11) DESC, id DESC LIMIT ?4`
)

// Connections implements storage.Connections.
func (s *Store) Connections(
	ctx context.Context, userID, before string, now time.Time, limit int,
) (out []storage.Connection, err error) {
	err = s.read(ctx, "Connections", func(c *conn) error {
		out, err = each(c, column.ReadConnection, pageConnections, userID, column.Millis(now), before, max(limit, 0))
		return err
	})
	return out, err
}

// Connection implements storage.Connections.
func (s *Store) Connection(
	ctx context.Context, userID, id string, now time.Time,
) (out storage.Connection, err error) {
	err = s.read(ctx, "Connection", func(c *conn) error {
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
	return s.write(ctx, "NarrowGrant", func(c *conn) error {
		g, app, err := applicationOf(c, userID, id, now)
		if err != nil {
			return err
		}
		grants, err := each(c, func(row scanner) (storage.Grant, error) {
			connection, err := column.ReadConnection(row)
			return connection.Grant, err
		}, "SELECT "+column.ConnectionRead+" FROM grants g WHERE "+ofConnected, userID, column.Millis(now), g.Resource,
			column.List(app.Clients))
		if err != nil {
			return err
		}
		narrow, err := column.Narrow(grants, to)
		if err != nil || len(narrow.Left) == 0 {
			return err
		}
		for id, left := range narrow.Left {
			step := run(c, "UPDATE grants SET scopes = ?, narrowed_at = ? WHERE id = ?", column.List(left),
				column.Millis(now), id)
			if len(left) == 0 {
				step = revoke(c, storage.ByConsent, "id = ?4", now, id)
			}
			if err := step(); err != nil {
				return err
			}
		}
		return all(
			run(c, `DELETE FROM consents WHERE user_id = ?1 AND resource = ?2 AND scope <> ''
				AND client_id IN (SELECT value FROM json_each(?3)) AND scope NOT IN (SELECT value FROM json_each(?4))`,
				userID, g.Resource, column.List(app.Clients), column.List(narrow.Kept)),
			expireCodes(c, userID, g.Resource, app, now),
		)
	})
}

// applicationOf returns a live grant of a user, and its application.
func applicationOf(
	c *conn, userID, id string, now time.Time,
) (g storage.Connection, app column.Application, err error) {
	if g, err = connection(c, userID, id, now); err == nil {
		app, err = application(c, userID, g.Resource, g.ClientID)
	}
	return g, app, err
}

// PauseGrant implements storage.Connections.
func (s *Store) PauseGrant(ctx context.Context, userID, id string, now time.Time) error {
	return s.write(ctx, "PauseGrant", func(c *conn) error {
		g, err := connection(c, userID, id, now)
		if err != nil {
			return err
		}
		apps, err := familyOf(c, g.Grant)
		for i := 0; err == nil && i < len(apps); i++ {
			err = all(
				func() error { return storePause(c, g, apps[i], column.PauseLimit(i), now) },
				pauseGrants(c, userID, g.Resource, apps[i], now),
			)
		}
		return err
	})
}

// pauseGrants pauses the grants of an application, and forgets what would give it another one.
func pauseGrants(c *conn, userID, resource string, app column.Application, now time.Time) func() error {
	return func() error {
		return all(
			forgetApplication(c, userID, resource, app),
			expireCodes(c, userID, resource, app, now),
			run(c, "UPDATE grants AS g SET paused_at = coalesce(paused_at, ?2) WHERE "+ofConnected,
				userID, column.Millis(now), resource, column.List(app.Clients)),
		)
	}
}

// ResumeGrant implements storage.Connections.
func (s *Store) ResumeGrant(ctx context.Context, userID, id string, now time.Time) error {
	return s.write(ctx, "ResumeGrant", func(c *conn) error {
		g, err := connection(c, userID, id, now)
		if err != nil {
			return err
		}
		apps, err := familyOf(c, g.Grant)
		if err != nil {
			return err
		}
		return resume(c, userID, g.Resource, apps, now)
	})
}

// StopEverything implements storage.Stops.
func (s *Store) StopEverything(ctx context.Context, userID string, now time.Time) error {
	return s.write(ctx, "StopEverything", func(c *conn) error {
		return all(
			endPauses(c, storage.Selection{UserID: userID}),
			eraseOfUser(c, userID, column.SignedOut, now),
			func() error { return cutOff(c, userID, storage.ByPerson, now) },
		)
	})
}
