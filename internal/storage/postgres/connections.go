package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/portable"
	"github.com/mcp-authd/mcp-authd/oauth"
)

const (
	// connected is the condition that the grant g is a live one of a user, $1, at $2.
	connected = `g.user_id = $1 AND g.revoked_at IS NULL AND g.code_used_at IS NOT NULL AND g.expires_at > $2::bigint AND NOT ` + isCut

	// ofConnected is the condition for such grants of an application, $4, at a resource, $3.
	ofConnected = connected + ` AND hashtext(user_id) = hashtext($1) AND resource = $3 AND client_id = ANY($4)`

	selectConnections = "SELECT " + column.ConnectionRead + " FROM grants g WHERE " + connected

	// The index begins with the hash of the user, followed by the grants' ids in order.
	pageConnections = selectConnections + ` AND NOT g.for_program AND hashtext(user_id) = hashtext($1)`
	pageBefore      = ` AND left(id, 11) <= left($4, 11) AND id < $4`
	pageOrder       = ` ORDER BY left(id, 11) DESC, id DESC LIMIT $3`

	// inOrder makes the planner read a page in index order. Without statistics on the user, the
	// planner assumes few grants, and sorts them all. It also compiles statements that it takes to
	// be costly, which costs more than the page.
	inOrder = "SELECT set_config('enable_sort', 'off', true), set_config('jit', 'off', true)"
)

// Connections implements storage.Connections.
func (s *Store) Connections(
	ctx context.Context, userID, before string, now time.Time, limit int,
) (out []storage.Connection, err error) {
	sql, args := pageConnections, []any{userID, column.Millis(now), max(limit, 0)}
	if before != "" {
		sql, args = sql+pageBefore, append(args, before)
	}
	err = s.tx(ctx, "Connections", func(ctx context.Context, q querier) (err error) {
		if _, err := q.Exec(ctx, inOrder); err != nil {
			return err
		}
		out, err = portable.Each(portableConn{ctx, q}, column.ReadConnection, sql+pageOrder, args...)
		return err
	})
	return out, err
}

// Connection implements storage.Connections.
func (s *Store) Connection(
	ctx context.Context, userID, id string, now time.Time,
) (out storage.Connection, err error) {
	err = s.do(ctx, "Connection", func(ctx context.Context, q querier) error {
		out, err = connection(ctx, q, userID, id, now)
		return err
	})
	return out, err
}

func connection(ctx context.Context, q querier, userID, id string, now time.Time) (storage.Connection, error) {
	var r column.ConnectionRow
	err := one(ctx, q, r.Dest(), selectConnections+" AND g.id = $3", userID, column.Millis(now), id)
	if err != nil {
		return storage.Connection{}, err
	}
	return r.Connection()
}

// NarrowGrant implements storage.Connections. It locks the grants, so that of two concurrent calls
// the second sees the result of the first.
func (s *Store) NarrowGrant(ctx context.Context, userID, id string, to oauth.Scopes, now time.Time) error {
	return s.txCommitted(ctx, "NarrowGrant", func(ctx context.Context, q querier) error {
		g, app, err := applicationOf(ctx, q, userID, id, now)
		if err != nil {
			return err
		}
		of := []any{userID, column.Millis(now), g.Resource, app.Clients}
		if _, err := q.Exec(ctx, "SELECT 1 FROM grants g WHERE "+ofConnected+" ORDER BY id FOR NO KEY UPDATE OF g",
			of...); err != nil {
			return err
		}
		grants, err := each(ctx, q, func(row pgx.CollectableRow) (storage.Grant, error) {
			connection, err := column.ReadConnection(row)
			return connection.Grant, err
		}, "SELECT "+column.ConnectionRead+" FROM grants g WHERE "+ofConnected, of...)
		if err != nil {
			return err
		}
		narrow, err := column.Narrow(grants, to)
		if err != nil {
			return err
		}
		if len(narrow.Left) == 0 {
			return settle(ctx, q)
		}
		// The consents go first, see forgetApplication.
		steps := []statement{
			{`DELETE FROM consents WHERE user_id = $1 AND resource = $2 AND scope <> ''
				AND client_id = ANY($3) AND NOT scope = ANY($4)`,
				[]any{userID, g.Resource, app.Clients, []string(narrow.Kept)}},
			expireCodes(userID, g.Resource, app, now),
		}
		for id, left := range narrow.Left {
			if len(left) == 0 {
				steps = append(steps, revoke(storage.ByConsent, "id = $4", now, id))
				continue
			}
			steps = append(steps, statement{"UPDATE grants SET scopes = $1, narrowed_at = $2 WHERE id = $3",
				[]any{column.List(left), column.Millis(now), id}})
		}
		return all(ctx, q, steps...)
	})
}

// applicationOf returns a live grant of a user, and its application.
func applicationOf(
	ctx context.Context, q querier, userID, id string, now time.Time,
) (g storage.Connection, app column.Application, err error) {
	if g, err = connection(ctx, q, userID, id, now); err == nil {
		app, err = application(ctx, q, userID, g.Resource, g.ClientID)
	}
	return g, app, err
}

// PauseGrant implements storage.Connections.
func (s *Store) PauseGrant(ctx context.Context, userID, id string, now time.Time) error {
	return s.txCommitted(ctx, "PauseGrant", func(ctx context.Context, q querier) error {
		g, apps, err := unmergedOf(ctx, q, userID, id, now)
		for i := 0; err == nil && i < len(apps); i++ {
			err = storePause(ctx, q, g, apps[i], column.PauseLimit(i), now)
		}
		if err == nil {
			apps, err = familyOf(ctx, q, g.Grant) // earlier approvals may have added clients
		}
		for i := 0; err == nil && i < len(apps); i++ {
			err = all(ctx, q, pauseGrants(userID, g.Resource, apps[i], now)...)
		}
		return err
	})
}

// pauseGrants pauses the grants of an application, and forgets what would give it another one.
func pauseGrants(userID, resource string, app column.Application, now time.Time) []statement {
	return []statement{
		forgetApplication(userID, resource, app),
		expireCodes(userID, resource, app, now),
		{"UPDATE grants AS g SET paused_at = coalesce(paused_at, $2) WHERE " + ofConnected,
			[]any{userID, column.Millis(now), resource, app.Clients}},
	}
}

// unmergedOf returns a live grant of a user, and its application with those that are merged with it. No merge begins
// until the transaction ends.
func unmergedOf(
	ctx context.Context, q querier, userID, id string, now time.Time,
) (g storage.Connection, apps []column.Application, err error) {
	if err = withoutMerges(ctx, q); err != nil {
		return g, nil, err
	}
	if g, err = connection(ctx, q, userID, id, now); err == nil {
		apps, err = familyOf(ctx, q, g.Grant)
	}
	return g, apps, err
}

// ResumeGrant implements storage.Connections.
func (s *Store) ResumeGrant(ctx context.Context, userID, id string, now time.Time) error {
	return s.txCommitted(ctx, "ResumeGrant", func(ctx context.Context, q querier) error {
		g, apps, err := unmergedOf(ctx, q, userID, id, now)
		if err != nil {
			return err
		}
		return all(ctx, q, resume(userID, g.Resource, apps, now)...)
	})
}

// StopEverything implements storage.Stops.
//
// It holds the account, so that a session which begins meanwhile is there to be ended, or finds
// that everything was stopped: see PutSession and CollectRemoteSignIn.
func (s *Store) StopEverything(ctx context.Context, userID string, now time.Time) error {
	return s.tx(ctx, "StopEverything", func(ctx context.Context, q querier) error {
		if _, err := exec(ctx, q, "UPDATE users SET stopped_at = greatest(stopped_at, $2::bigint) WHERE id = $1",
			userID, column.Millis(now)); err != nil {
			return err
		}
		if err := all(ctx, q, endPauses(storage.Selection{UserID: userID}),
			eraseOfUser(userID, column.SignedOut, now)); err != nil {
			return err
		}
		return cutOff(ctx, q, userID, storage.ByPerson, now)
	})
}
