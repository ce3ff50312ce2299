package sqlite

import (
	"context"
	"math"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

const (
	// putPause stores a pause if its user has room. An existing pause stays.
	putPause = "INSERT INTO pauses (" + column.PauseRead + `)
SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7
WHERE EXISTS (SELECT 1 FROM pauses WHERE id = ?1 AND paused_at IS NOT NULL)
	OR (SELECT count(*) FROM pauses WHERE user_id = ?2 AND paused_at IS NOT NULL) < ?8
ON CONFLICT (id) DO UPDATE SET paused_at = coalesce(paused_at, excluded.paused_at)`

	// holdsBack is the condition for pauses that apply to a client: its application's, by id, and
	// those that began with it. heldBack returns the parameters.
	holdsBack = "(id = ? OR user_id = ? AND resource = ? AND client_id = ?) AND paused_at IS NOT NULL"

	// notPaused is the condition that the application of an approval is not paused.
	notPaused = `
	AND NOT EXISTS (SELECT 1 FROM pauses WHERE ` + holdsBack + ")"
)

// PauseOf implements storage.Pauses.
func (s *Store) PauseOf(
	ctx context.Context, userID string, client *storage.Client, resource string,
) (p storage.Pause, err error) {
	err = s.read(ctx, "PauseOf", func(c *conn) error {
		id := storage.PauseID(userID, client.Application(), resource)
		var r column.PauseRow
		err := c.one(r.Dest(), column.ReadPauses+holdsBack+" ORDER BY id = ? DESC LIMIT 1",
			id, userID, resource, client.ID, id)
		p = r.Pause()
		return err
	})
	return p, err
}

// EndPause implements storage.Pauses.
func (s *Store) EndPause(ctx context.Context, userID, id string, now time.Time) error {
	return s.write(ctx, "EndPause", func(c *conn) error {
		var r column.PauseRow
		if err := c.one(r.Dest(), column.ReadPauses+"id = ? AND user_id = ?", id, userID); err != nil {
			return err
		}
		p := r.Pause()
		known, err := knownOf(c, userID, p.Resource, p.ClientID)
		if err != nil {
			return err
		}
		apps, err := family(c, column.ApplicationBy(p.Application, p.ClientID, known), known)
		if err != nil {
			return err
		}
		return resume(c, userID, p.Resource, apps, now)
	})
}

// resume ends the pauses of applications, and of each of their grants.
func resume(c *conn, userID, resource string, apps []column.Application, now time.Time) error {
	for _, app := range apps {
		err := all(
			endPause(c, userID, resource, app),
			run(c, "UPDATE grants AS g SET paused_at = NULL WHERE "+ofConnected,
				userID, column.Millis(now), resource, column.List(app.Clients)),
		)
		if err != nil {
			return err
		}
	}
	return nil
}

// endPause deletes the pause of an application. A client that has changed its name is found by its
// id.
func endPause(c *conn, userID, resource string, app column.Application) func() error {
	return run(c, `DELETE FROM pauses WHERE user_id = ? AND resource = ?
		AND (application = ? OR client_id IN (SELECT value FROM json_each(?)))`,
		userID, resource, app.Key, column.List(app.Clients))
}

// endPauses deletes the pauses of the user of a selection, and no pauses without a user.
func endPauses(c *conn, sel storage.Selection) func() error {
	return run(c, `DELETE FROM pauses WHERE user_id = ?1 AND ?1 <> '' AND ?2 IN ('', client_id) AND ?3 IN ('', resource)`,
		sel.UserID, sel.ClientID, sel.Resource)
}

// storePause stores the pause of an application, unless the person has limit pauses. A program key gets no second
// grant, and a machine has no user.
func storePause(c *conn, g storage.Connection, app column.Application, limit int, now time.Time) error {
	if g.ForProgram || g.UserID == "" {
		return nil
	}
	return changed(storage.ErrFull)(
		c.exec(putPause, append(column.PauseValues(g.Grant, app, now), limit)...))
}

// unitePauses pauses two applications, and what counts as them, for each person who has paused one of them.
func unitePauses(c *conn, key, into string, now time.Time) error {
	keys, err := each(c, func(row scanner) (key string, err error) {
		err = row.Scan(&key)
		return key, err
	}, "SELECT ?1 UNION SELECT ?2 UNION SELECT application FROM application_aliases WHERE counts_as IN (?1, ?2)", key, into)
	if err != nil {
		return err
	}
	paused, err := each(c, column.ReadPause,
		column.ReadPauses+"application IN (SELECT value FROM json_each(?))", column.List(keys))
	if err != nil {
		return err
	}
	for _, p := range column.MissingPauses(keys, paused) {
		known, err := knownOf(c, p.UserID, p.Resource, "")
		if err != nil {
			return err
		}
		app := column.ApplicationBy(p.Application, p.ClientID, known)
		err = all(
			run(c, putPause, append(column.StoredPause(p), math.MaxInt32)...),
			pauseGrants(c, p.UserID, p.Resource, app, now),
		)
		if err != nil {
			return err
		}
	}
	return nil
}

// pauseOf returns the id of the pause that an approval must not find.
func pauseOf(c *conn, client *storage.Client, g storage.Grant) (string, error) {
	if client != nil {
		return storage.PauseID(g.UserID, client.Application(), g.Resource), nil
	}
	app, err := application(c, g.UserID, g.Resource, g.ClientID)
	return storage.PauseID(g.UserID, app.Key, g.Resource), err
}

// heldBack returns the parameters of holdsBack for a grant and the id of its application's pause.
func heldBack(pauseID string, g storage.Grant) []any {
	return []any{pauseID, g.UserID, g.Resource, g.ClientID}
}

// isPaused reports whether a pause applies to a grant.
func isPaused(c *conn, pauseID string, g storage.Grant) (paused bool, err error) {
	err = c.one([]any{&paused}, "SELECT EXISTS (SELECT 1 FROM pauses WHERE "+holdsBack+")", heldBack(pauseID, g)...)
	return paused, err
}

// GrantApplication implements storage.Pauses.
func (s *Store) GrantApplication(
	ctx context.Context, grantID string, now time.Time,
) (out storage.Application, err error) {
	err = s.read(ctx, "GrantApplication", func(c *conn) error {
		var g storage.Grant
		err := c.one([]any{&g.UserID, &g.ClientID, &g.Resource},
			"SELECT user_id, client_id, resource FROM grants WHERE id = ? AND user_id <> ''", grantID)
		if err != nil {
			return err
		}
		app, err := application(c, g.UserID, g.Resource, g.ClientID)
		if err != nil {
			return err
		}
		apps, err := familyOf(c, g)
		if err != nil {
			return err
		}
		out.Key = app.Key
		return c.one([]any{&out.Connections}, "SELECT count(*) FROM grants g WHERE "+ofConnected,
			g.UserID, column.Millis(now), g.Resource, column.List(column.ClientsOf(apps)))
	})
	return out, err
}
