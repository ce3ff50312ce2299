package sqlite

import (
	"context"
	"errors"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

// spendClearance uses up a given tool call approval: one of N callers changes the row.
var spendClearance = `UPDATE clearances AS w SET state = 'spent'
WHERE w.binding = ?1 AND w.state = 'given' AND w.expires_at > ?2 AND ` + giverStands + `
	AND ` + clearanceLive("?2") + `
RETURNING ` + column.ClearanceRead

// addClearance stores a waiting tool call approval if there is room. It replaces one that was used
// or has expired, or whose giver may no longer give it. It counts and stores in one statement.
var addClearance = "INSERT INTO clearances AS w (" + column.ClearanceColumns + `, application)
SELECT ?1, ?2, w.user_id, w.client_id, w.grant_id, w.node_id, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?21
FROM (SELECT ?3 AS user_id, ?4 AS client_id, ?5 AS grant_id, ?6 AS node_id) w
WHERE ` + clearanceLive("?17") + `
	AND (SELECT count(*) FROM clearances o WHERE o.grant_id = w.grant_id AND o.client_id = w.client_id
		AND o.state = 'waiting' AND o.expires_at > ?17) < ?19
	AND (w.user_id = '' OR (SELECT count(*) FROM clearances o WHERE o.user_id = w.user_id
		AND o.state = 'waiting' AND o.expires_at > ?17) < ?20)
ON CONFLICT (binding) DO UPDATE SET id = excluded.id, sealed = excluded.sealed, state = excluded.state,
	giver_id = excluded.giver_id, created_at = excluded.created_at, expires_at = excluded.expires_at,
	application = excluded.application
	WHERE w.expires_at <= excluded.created_at OR w.state = 'spent' OR w.state = 'given' AND NOT ` + giverStands + `
RETURNING ` + column.ClearanceRead

var (
	readClearance = "SELECT " + column.ClearanceRead + " FROM clearances w WHERE w.id = ?1 AND w.expires_at > ?2 AND " +
		clearanceLive("?2")
	boundClearance = "SELECT " + column.ClearanceRead + " FROM clearances w WHERE w.binding = ?1 AND w.expires_at > ?2 AND " +
		clearanceLive("?2")

	// decideClearance decides a tool call approval once.
	decideClearance = `UPDATE clearances AS w SET state = ?2, giver_id = (SELECT s.user_id FROM sessions s WHERE s.hash = ?3)
WHERE w.id = ?1 AND w.state = 'waiting' AND w.expires_at > ?4 AND ` + clearanceLive("?4") + `
	AND EXISTS (SELECT 1 FROM sessions s JOIN users u ON u.id = s.user_id
		WHERE s.hash = ?3 AND s.expires_at > ?4 AND NOT u.disabled AND NOT ` + column.IsSignedOut + ` AND ` + mayDecide + `)
RETURNING ` + column.ClearanceRead
	deciding = `SELECT EXISTS (SELECT 1 FROM sessions s JOIN users u ON u.id = s.user_id
	WHERE s.hash = ?1 AND s.expires_at > ?2 AND NOT u.disabled AND NOT ` + column.IsSignedOut + ")"

	waitingClearances = "SELECT " + column.ClearanceRead + ` FROM clearances w
WHERE w.state = 'waiting' AND w.expires_at > ?2 AND EXISTS (SELECT 1 FROM users u WHERE u.id = ?1 AND NOT u.disabled AND ` +
		mayDecide + `) AND ` + clearanceLive("?2") + `
ORDER BY w.created_at, w.id LIMIT ?3`

	// rebindClearance moves a tool call approval to the grant of an approval.
	rebindClearance = `UPDATE clearances SET binding = ?2, grant_id = ?3, node_id = ''
WHERE id = ?1 AND state IN ('waiting', 'given') AND expires_at > ?4`

	mayDecide   = column.MayDecide("instr", "char(10)")
	giverStands = column.GiverStands(mayDecide)
)

func clearanceLive(now string) string { return column.ClearanceLive(now, isCut, nodeIsCut) }

// AskClearance implements storage.Clearances.
func (s *Store) AskClearance(ctx context.Context, a storage.Clearance) (out storage.Clearance, err error) {
	err = s.write(ctx, "AskClearance", func(c *conn) (err error) {
		key, now := a.Key(), column.Millis(a.CreatedAt)
		if out, err = clearance(c, spendClearance, key[:], now); !errors.Is(err, storage.ErrNotFound) {
			return err
		}
		application, err := applicationKey(c, a)
		if err != nil {
			return err
		}
		if out, err = denied(c, a, application); !errors.Is(err, storage.ErrNotFound) {
			return err
		}
		args := append(column.ClearanceValues(a), storage.MaxClearances, storage.MaxPersonClearances, application)
		if out, err = clearance(c, addClearance, args...); !errors.Is(err, storage.ErrNotFound) {
			return err
		}
		if out, err = clearance(c, boundClearance, key[:], now); !errors.Is(err, storage.ErrNotFound) {
			return err
		}
		var live bool
		err = c.one([]any{&live}, liveTerms, a.ClientID, a.GrantID, a.NodeID, now)
		switch {
		case err != nil:
			return err
		case !live:
			return storage.ErrRevoked
		}
		return storage.ErrFull
	})
	return out, err
}

// applicationKey returns the key of the application of a call; "" for the call of a machine.
func applicationKey(c *conn, a storage.Clearance) (string, error) {
	if a.UserID == "" {
		return "", nil
	}
	app, err := application(c, a.UserID, a.Resource, a.ClientID)
	return app.Key, err
}

// denied returns the denial of the same call of the same application, from any of its connections,
// or ErrNotFound.
func denied(c *conn, a storage.Clearance, application string) (storage.Clearance, error) {
	if application == "" {
		return storage.Clearance{}, storage.ErrNotFound
	}
	return clearance(c, deniedClearance, column.DeniedValues(a, application)...)
}

var deniedClearance = column.Denied(parameters(1))

var liveTerms = "SELECT EXISTS (SELECT 1 FROM (SELECT ?1 AS client_id, ?2 AS grant_id, ?3 AS node_id) w WHERE " +
	clearanceLive("?4") + ")"

// clearance reads the tool call approval that a statement returns.
func clearance(c *conn, sql string, args ...any) (storage.Clearance, error) {
	var row column.ClearanceRow
	if err := c.one(row.Dest(), sql, args...); err != nil {
		return storage.Clearance{}, err
	}
	return row.Clearance()
}

// Clearance implements storage.Clearances.
func (s *Store) Clearance(ctx context.Context, id string, now time.Time) (out storage.Clearance, err error) {
	err = s.read(ctx, "Clearance", func(c *conn) (err error) {
		out, err = clearance(c, readClearance, id, column.Millis(now))
		return err
	})
	return out, err
}

// DecideClearance implements storage.Clearances.
func (s *Store) DecideClearance(ctx context.Context, d storage.ClearanceDecision) (out storage.Clearance, err error) {
	err = s.write(ctx, "DecideClearance", func(c *conn) (err error) {
		state, now := column.Decided(d), column.Millis(d.Now)
		out, err = clearance(c, decideClearance, d.ID, state, d.Session[:], now)
		if !errors.Is(err, storage.ErrNotFound) {
			return err
		}
		there, err := clearance(c, readClearance, d.ID, now)
		if err != nil {
			return err
		}
		var live bool
		if err = c.one([]any{&live}, deciding, d.Session[:], now); err != nil {
			return err
		}
		return column.Undecided(there, live)
	})
	return out, err
}

// WaitingClearances implements storage.Clearances.
func (s *Store) WaitingClearances(
	ctx context.Context, userID string, now time.Time,
) (out []storage.Clearance, err error) {
	err = s.read(ctx, "WaitingClearances", func(c *conn) error {
		out, err = each(c, func(row scanner) (storage.Clearance, error) {
			var r column.ClearanceRow
			if err := row.Scan(r.Dest()...); err != nil {
				return storage.Clearance{}, err
			}
			return r.Clearance()
		}, waitingClearances, userID, column.Millis(now), storage.MaxPersonClearances)
		return err
	})
	return out, err
}

// rebind moves the tool call approval of an approval to its grant, if it may move there.
func rebind(c *conn, a storage.Approval) error {
	if a.Clearance == "" {
		return nil
	}
	there, err := clearance(c, readClearance, a.Clearance, column.Millis(a.Now))
	if err != nil {
		return ignore(err, storage.ErrNotFound)
	}
	moved, may := column.Rebound(there, a)
	if !may {
		return nil
	}
	key := moved.Key()
	_, err = c.exec(rebindClearance, moved.ID, key[:], moved.GrantID, column.Millis(a.Now))
	return err
}
