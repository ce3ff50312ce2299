package postgres

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/portable"
)

// Verbs that give an application a grant, and verbs that pause it, lock the row of the pause. So
// the row is also stored for an application that is not paused, for column.TurnFor. A pause
// therefore finds every earlier grant, and ends its code. Every later grant is refused.
const (
	// putPause stores a pause if its user has room. An existing pause stays.
	putPause = "INSERT INTO pauses AS p (" + column.PauseRead + `)
SELECT $1::text, $2::text, $3::text, $4::text, $5::text, $6::text, $7::bigint
WHERE EXISTS (SELECT 1 FROM pauses WHERE id = $1 AND paused_at IS NOT NULL)
	OR (SELECT count(*) FROM pauses WHERE user_id = $2 AND paused_at IS NOT NULL) < $8
ON CONFLICT (id) DO UPDATE SET paused_at = coalesce(p.paused_at, excluded.paused_at), expires_at = NULL,
	client_id = CASE WHEN p.paused_at IS NULL THEN excluded.client_id ELSE p.client_id END,
	client_name = CASE WHEN p.paused_at IS NULL THEN excluded.client_name ELSE p.client_name END`

	// begunBy is the condition for a pause that began with a client, under any name. Its parameters
	// are the user, the resource and the client.
	begunBy = "user_id = %s AND resource = %s AND client_id = %s AND paused_at IS NOT NULL"

	// takeTurn returns a row if the client is not paused, and locks its application against a
	// pause. Its parameters are the id of the pause, the user, the application, the resource, now,
	// and begunBy.
	takeTurn = `INSERT INTO pauses AS p (id, user_id, application, resource, client_id, client_name, expires_at)
	SELECT %[1]s::text, %[2]s::text, %[3]s::text, %[4]s::text, '', '', %[5]s::bigint
	WHERE NOT EXISTS (SELECT 1 FROM pauses WHERE %[6]s)
	ON CONFLICT (id) DO UPDATE SET expires_at = excluded.expires_at WHERE p.paused_at IS NULL`
)

// PauseOf implements storage.Pauses.
func (s *Store) PauseOf(
	ctx context.Context, userID string, client *storage.Client, resource string,
) (p storage.Pause, err error) {
	err = s.do(ctx, "PauseOf", func(ctx context.Context, q querier) error {
		var r column.PauseRow
		err := one(ctx, q, r.Dest(), column.ReadPauses+"(id = $1 OR "+fmt.Sprintf(begunBy, "$2", "$3", "$4")+
			") ORDER BY id = $1 DESC LIMIT 1",
			storage.PauseID(userID, client.Application(), resource), userID, resource, client.ID)
		p = r.Pause()
		return err
	})
	return p, err
}

// EndPause implements storage.Pauses.
func (s *Store) EndPause(ctx context.Context, userID, id string, now time.Time) error {
	return s.txCommitted(ctx, "EndPause", func(ctx context.Context, q querier) error {
		if err := withoutMerges(ctx, q); err != nil {
			return err
		}
		var r column.PauseRow
		err := one(ctx, q, r.Dest(), column.ReadPauses+"id = $1 AND user_id = $2 FOR UPDATE", id, userID)
		if err != nil {
			return err
		}
		p := r.Pause()
		known, err := knownOf(ctx, q, userID, p.Resource, p.ClientID)
		if err != nil {
			return err
		}
		apps, err := family(ctx, q, column.ApplicationBy(p.Application, p.ClientID, known), known)
		if err != nil {
			return err
		}
		return all(ctx, q, resume(userID, p.Resource, apps, now)...)
	})
}

// resume ends the pauses of applications, and of each of their grants.
func resume(userID, resource string, apps []column.Application, now time.Time) (out []statement) {
	for _, app := range apps {
		out = append(out, endPause(userID, resource, app),
			statement{"UPDATE grants AS g SET paused_at = NULL WHERE " + ofConnected,
				[]any{userID, column.Millis(now), resource, app.Clients}})
	}
	return out
}

// endPause deletes the pause of an application. A client that has changed its name is found by its
// id.
func endPause(userID, resource string, app column.Application) statement {
	return statement{`DELETE FROM pauses WHERE user_id = $1 AND resource = $2 AND paused_at IS NOT NULL
		AND (application = $3 OR client_id = ANY($4))`, []any{userID, resource, app.Key, app.Clients}}
}

// endPauses deletes the pauses of the user of a selection, and no pauses without a user.
func endPauses(sel storage.Selection) statement {
	return statement{`DELETE FROM pauses WHERE user_id = $1 AND $1 <> '' AND $2 IN ('', client_id) AND $3 IN ('', resource)
		AND paused_at IS NOT NULL`, []any{sel.UserID, sel.ClientID, sel.Resource}}
}

// storePause stores the pause of an application, unless the person has limit pauses. A program key gets no second
// grant, and a machine has no user.
func storePause(
	ctx context.Context, q querier, g storage.Connection, app column.Application, limit int, now time.Time,
) error {
	if g.ForProgram || g.UserID == "" {
		return nil
	}
	return changed(storage.ErrFull)(
		exec(ctx, q, putPause, append(column.PauseValues(g.Grant, app, now), limit)...))
}

// unitePauses pauses two applications, and what counts as them, for each person who has paused one of them.
func unitePauses(ctx context.Context, q querier, key, into string, now time.Time) error {
	keys, err := each(ctx, q, pgx.RowTo[string], `SELECT $1::text UNION SELECT $2::text
		UNION SELECT application FROM application_aliases WHERE counts_as IN ($1, $2)`, key, into)
	if err != nil {
		return err
	}
	paused, err := portable.Each(portableConn{ctx, q}, column.ReadPause,
		column.ReadPauses+"application = ANY($1) ORDER BY id", keys)
	if err != nil {
		return err
	}
	missing := column.MissingPauses(keys, paused)
	for _, p := range missing {
		if _, err := exec(ctx, q, putPause, append(column.StoredPause(p), math.MaxInt32)...); err != nil {
			return err
		}
	}
	for _, p := range missing { // after the pauses, which earlier approvals hold up
		known, err := knownOf(ctx, q, p.UserID, p.Resource, "")
		if err != nil {
			return err
		}
		app := column.ApplicationBy(p.Application, p.ClientID, known)
		if err := all(ctx, q, pauseGrants(p.UserID, p.Resource, app, now)...); err != nil {
			return err
		}
	}
	return nil
}

// turn is what takeTurn is about.
type turn struct{ application, pauseID string }

// turnOf returns the turn of a grant that will be stored.
func turnOf(ctx context.Context, q querier, client *storage.Client, g storage.Grant) (turn, error) {
	app := column.Application{}
	if client != nil {
		app.Key = client.Application()
	} else {
		var err error
		if app, err = application(ctx, q, g.UserID, g.Resource, g.ClientID); err != nil {
			return turn{}, err
		}
	}
	return turn{app.Key, storage.PauseID(g.UserID, app.Key, g.Resource)}, nil
}

// take returns ErrPaused if the user has paused the application. Otherwise no pause begins until
// the transaction ends.
func (t turn) take(ctx context.Context, q querier, g storage.Grant) error {
	return changed(storage.ErrPaused)(exec(ctx, q,
		fmt.Sprintf(takeTurn, "$1", "$2", "$3", "$4", "$5", fmt.Sprintf(begunBy, "$2", "$4", "$6")),
		t.pauseID, g.UserID, t.application, g.Resource, column.Millis(g.CreatedAt.Add(column.TurnFor)), g.ClientID))
}

// first puts take before the statement of an approval, which depends on its rows.
func (t turn) first(sql string, args []any, now time.Time) (string, []any) {
	n := len(args)
	take := fmt.Sprintf(takeTurn, parameter(n+1), "$6", parameter(n+2), "$7", parameter(n+3),
		fmt.Sprintf(begunBy, "$6", "$7", "$5"))
	return "WITH turn AS (" + take + " RETURNING 1),\n" + sql,
		append(args, t.pauseID, t.application, column.Millis(now.Add(column.TurnFor)))
}

func parameter(n int) string { return "$" + strconv.Itoa(n) }

// GrantApplication implements storage.Pauses.
func (s *Store) GrantApplication(
	ctx context.Context, grantID string, now time.Time,
) (out storage.Application, err error) {
	err = s.do(ctx, "GrantApplication", func(ctx context.Context, q querier) error {
		var g storage.Grant
		err := one(ctx, q, []any{&g.UserID, &g.ClientID, &g.Resource},
			"SELECT user_id, client_id, resource FROM grants WHERE id = $1 AND user_id <> ''", grantID)
		if err != nil {
			return err
		}
		app, err := application(ctx, q, g.UserID, g.Resource, g.ClientID)
		if err != nil {
			return err
		}
		apps, err := familyOf(ctx, q, g)
		if err != nil {
			return err
		}
		out.Key = app.Key
		return one(ctx, q, []any{&out.Connections}, "SELECT count(*) FROM grants g WHERE "+ofConnected,
			g.UserID, column.Millis(now), g.Resource, column.ClientsOf(apps))
	})
	return out, err
}
