package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/storage"
	"github.com/mcp-authd/mcp-authd/storage/internal/column"
)

const (
	// connected is the condition that the grant g is a live one of a person, $1, at $2.
	connected = `g.user_id = $1 AND g.revoked_at IS NULL AND g.code_used_at IS NOT NULL AND g.expires_at > $2::bigint AND NOT ` + isCut

	selectConnections = "SELECT " + column.ConnectionRead + " FROM grants g WHERE " + connected

	// The index begins with the hash of the person, and goes on in the order of the grants' ids.
	pageConnections = selectConnections + ` AND NOT g.for_program AND hashtext(user_id) = hashtext($1)`
	pageBefore      = ` AND left(id, 11) <= left($4, 11) AND id < $4`
	pageOrder       = ` ORDER BY left(id, 11) DESC, id DESC LIMIT $3`

	// inOrder has a page read in that order up to its end. Without statistics of the person the planner
	// takes them to have few grants, and sorts all that they have; and it compiles what it takes to be
	// costly, which costs more than the page.
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
	err = s.tx(ctx, "connections", func(ctx context.Context, q querier) (err error) {
		if _, err := q.Exec(ctx, inOrder); err != nil {
			return err
		}
		out, err = each(ctx, q, scanConnection, sql+pageOrder, args...)
		return err
	})
	return out, err
}

func scanConnection(row pgx.CollectableRow) (storage.Connection, error) {
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
	err = s.do(ctx, "connection", func(ctx context.Context, q querier) error {
		out, err = connection(ctx, q, userID, id, now, "")
		return err
	})
	return out, err
}

func connection(
	ctx context.Context, q querier, userID, id string, now time.Time, lock string,
) (storage.Connection, error) {
	var r column.ConnectionRow
	err := one(ctx, q, r.Dest(), selectConnections+" AND g.id = $3"+lock, userID, column.Millis(now), id)
	if err != nil {
		return storage.Connection{}, err
	}
	return r.Connection()
}

// NarrowGrant implements storage.Connections. It holds the grant, so that of two narrowings the
// second one sees what the first has left.
func (s *Store) NarrowGrant(ctx context.Context, userID, id string, to oauth.Scopes, now time.Time) error {
	return s.tx(ctx, "narrow grant", func(ctx context.Context, q querier) error {
		g, err := connection(ctx, q, userID, id, now, " FOR NO KEY UPDATE OF g")
		if err != nil {
			return err
		}
		gone, err := column.Narrowing(g.Grant, to)
		if err != nil {
			return err
		}
		if len(gone) == 0 {
			return settle(ctx, q)
		}
		return all(ctx, q,
			statement{"UPDATE grants SET scopes = $1, narrowed_at = $2 WHERE id = $3",
				[]any{column.List(g.Scopes.Without(gone)), column.Millis(now), id}},
			statement{"DELETE FROM consents WHERE user_id = $1 AND client_id = $2 AND resource = $3 AND scope = ANY($4)",
				[]any{g.UserID, g.ClientID, g.Resource, []string(gone)}},
		)
	})
}

// PauseGrant implements storage.Connections.
func (s *Store) PauseGrant(ctx context.Context, userID, id string, now time.Time) error {
	return s.do(ctx, "pause grant", func(ctx context.Context, q querier) error {
		return changed(storage.ErrNotFound)(exec(ctx, q,
			"UPDATE grants AS g SET paused_at = coalesce(paused_at, $2) WHERE "+connected+" AND id = $3",
			userID, column.Millis(now), id))
	})
}

// ResumeGrant implements storage.Connections.
func (s *Store) ResumeGrant(ctx context.Context, userID, id string, now time.Time) error {
	return s.do(ctx, "resume grant", func(ctx context.Context, q querier) error {
		return changed(storage.ErrNotFound)(exec(ctx, q,
			"UPDATE grants AS g SET paused_at = NULL WHERE "+connected+" AND id = $3",
			userID, column.Millis(now), id))
	})
}

// StopEverything implements storage.Stops.
//
// It holds the account, so that a session which begins meanwhile is there to be ended, or finds that
// everything was stopped: see PutSession and CollectRemoteSignIn.
func (s *Store) StopEverything(ctx context.Context, userID string, now time.Time) error {
	return s.tx(ctx, "stop everything", func(ctx context.Context, q querier) error {
		if _, err := exec(ctx, q, "UPDATE users SET stopped_at = greatest(stopped_at, $2::bigint) WHERE id = $1",
			userID, column.Millis(now)); err != nil {
			return err
		}
		if err := all(ctx, q, eraseOfUser(userID, column.SignedOut, now)); err != nil {
			return err
		}
		return cutOff(ctx, q, userID, storage.ByPerson, now)
	})
}
