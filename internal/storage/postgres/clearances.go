package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

// spendClearance uses up a given tool call approval: one of N callers changes the row.
var spendClearance = `UPDATE clearances AS w SET state = 'spent'
WHERE w.binding = $1 AND w.state = 'given' AND w.expires_at > $2 AND ` + giverStands + `
	AND ` + clearanceLive("$2") + `
RETURNING ` + column.ClearanceRead

// addClearance stores a waiting tool call approval if there is room. It replaces one that was used
// or has expired, or whose giver may no longer give it. It counts and stores in one statement.
var addClearance = "INSERT INTO clearances AS w (" + column.ClearanceColumns + `, application)
SELECT $1::bytea, $2::text, w.user_id, w.client_id, w.grant_id, w.node_id, $7::text, $8::text, $9::bytea, $10::text, $11::text, $12::text, $13::bigint, $14::bytea, $15::text, $16::text, $17::bigint, $18::bigint, $21::text
FROM (SELECT $3::text AS user_id, $4::text AS client_id, $5::text AS grant_id, $6::text AS node_id) w
WHERE ` + clearanceLive("$17") + `
	AND (SELECT count(*) FROM clearances o WHERE o.grant_id = w.grant_id AND o.client_id = w.client_id
		AND o.state = 'waiting' AND o.expires_at > $17) < $19
	AND (w.user_id = '' OR (SELECT count(*) FROM clearances o WHERE o.user_id = w.user_id
		AND o.state = 'waiting' AND o.expires_at > $17) < $20)
ON CONFLICT (binding) DO UPDATE SET id = excluded.id, sealed = excluded.sealed, state = excluded.state,
	giver_id = excluded.giver_id, created_at = excluded.created_at, expires_at = excluded.expires_at,
	application = excluded.application
	WHERE w.expires_at <= excluded.created_at OR w.state = 'spent' OR w.state = 'given' AND NOT ` + giverStands + `
RETURNING ` + column.ClearanceRead

// holdWaiting locks a row until the transaction ends, so that approvals with one limit are counted
// one after the other. A client of the configuration has no row.
const holdWaiting = `INSERT INTO spent (purpose, id, expires_at) VALUES ('clearances', $1, $2)
ON CONFLICT (purpose, id) DO UPDATE SET expires_at = excluded.expires_at`

// waitingOf names the group that shares one limit: the approvals of a user, for all of their
// grants, or of a grant, or of a client without a grant.
func waitingOf(t storage.ClearanceTerms) string {
	switch {
	case t.UserID != "":
		return "person " + t.UserID
	case t.GrantID != "":
		return "grant " + t.GrantID
	}
	return "client " + t.ClientID
}

var (
	readClearance = "SELECT " + column.ClearanceRead + " FROM clearances w WHERE w.id = $1 AND w.expires_at > $2 AND " +
		clearanceLive("$2")
	boundClearance = "SELECT " + column.ClearanceRead + " FROM clearances w WHERE w.binding = $1 AND w.expires_at > $2 AND " +
		clearanceLive("$2")

	// askedClearance finds the earlier request, so that a repeated call writes nothing.
	askedClearance = boundClearance + " AND w.state IN ('waiting', 'refused')"

	// decideClearance decides a tool call approval once.
	decideClearance = `UPDATE clearances AS w SET state = $2, giver_id = (SELECT s.user_id FROM sessions s WHERE s.hash = $3)
WHERE w.id = $1 AND w.state = 'waiting' AND w.expires_at > $4 AND ` + clearanceLive("$4") + `
	AND EXISTS (SELECT 1 FROM sessions s JOIN users u ON u.id = s.user_id
		WHERE s.hash = $3 AND s.expires_at > $4 AND NOT u.disabled AND NOT ` + column.IsSignedOut + ` AND ` + mayDecide + `)
RETURNING ` + column.ClearanceRead
	deciding = `SELECT EXISTS (SELECT 1 FROM sessions s JOIN users u ON u.id = s.user_id
	WHERE s.hash = $1 AND s.expires_at > $2 AND NOT u.disabled AND NOT ` + column.IsSignedOut + ")"

	waitingClearances = "SELECT " + column.ClearanceRead + ` FROM clearances w
WHERE w.state = 'waiting' AND w.expires_at > $2 AND EXISTS (SELECT 1 FROM users u WHERE u.id = $1 AND NOT u.disabled AND ` +
		mayDecide + `) AND ` + clearanceLive("$2") + `
ORDER BY w.created_at, w.id LIMIT $3`

	// rebindClearance moves a tool call approval to the grant of an approval.
	rebindClearance = `UPDATE clearances SET binding = $2, grant_id = $3, node_id = ''
WHERE id = $1 AND state IN ('waiting', 'given') AND expires_at > $4`

	mayDecide   = column.MayDecide("strpos", "chr(10)")
	giverStands = column.GiverStands(mayDecide)
)

func clearanceLive(now string) string { return column.ClearanceLive(now, isCut, nodeIsCut) }

// AskClearance implements storage.Clearances.
func (s *Store) AskClearance(ctx context.Context, a storage.Clearance) (out storage.Clearance, err error) {
	err = s.txCommitted(ctx, "AskClearance", func(ctx context.Context, q querier) (err error) {
		key, now := a.Key(), column.Millis(a.CreatedAt)
		if out, err = clearance(ctx, q, spendClearance, key[:], now); !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		if out, err = clearance(ctx, q, askedClearance, key[:], now); !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		if _, err = exec(ctx, q, holdWaiting, waitingOf(a.ClearanceTerms), column.Millis(a.ExpiresAt)); err != nil {
			return err
		}
		application, err := applicationKey(ctx, q, a)
		if err != nil {
			return err
		}
		if out, err = denied(ctx, q, a, application); !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		args := append(column.ClearanceValues(a), storage.MaxClearances, storage.MaxPersonClearances, application)
		if out, err = clearance(ctx, q, addClearance, args...); !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		if out, err = clearance(ctx, q, boundClearance, key[:], now); !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		var live bool
		err = one(ctx, q, []any{&live}, liveTerms, a.ClientID, a.GrantID, a.NodeID, now)
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
func applicationKey(ctx context.Context, q querier, a storage.Clearance) (string, error) {
	if a.UserID == "" {
		return "", nil
	}
	app, err := application(ctx, q, a.UserID, a.Resource, a.ClientID)
	return app.Key, err
}

// denied returns the denial of the same call of the same application, from any of its connections,
// or pgx.ErrNoRows.
func denied(ctx context.Context, q querier, a storage.Clearance, application string) (storage.Clearance, error) {
	if application == "" {
		return storage.Clearance{}, pgx.ErrNoRows
	}
	return clearance(ctx, q, deniedClearance, column.DeniedValues(a, application)...)
}

var deniedClearance = column.Denied(parameters(1))

var liveTerms = "SELECT EXISTS (SELECT 1 FROM (SELECT $1::text AS client_id, $2::text AS grant_id, $3::text AS node_id) w WHERE " +
	clearanceLive("$4") + ")"

// clearance reads the tool call approval that a statement returns.
func clearance(ctx context.Context, q querier, sql string, args ...any) (storage.Clearance, error) {
	var row column.ClearanceRow
	if err := one(ctx, q, row.Dest(), sql, args...); err != nil {
		return storage.Clearance{}, err
	}
	return row.Clearance()
}

// Clearance implements storage.Clearances.
func (s *Store) Clearance(ctx context.Context, id string, now time.Time) (out storage.Clearance, err error) {
	err = s.do(ctx, "Clearance", func(ctx context.Context, q querier) (err error) {
		out, err = clearance(ctx, q, readClearance, id, column.Millis(now))
		return err
	})
	return out, err
}

// DecideClearance implements storage.Clearances.
func (s *Store) DecideClearance(ctx context.Context, d storage.ClearanceDecision) (out storage.Clearance, err error) {
	err = s.txCommitted(ctx, "DecideClearance", func(ctx context.Context, q querier) (err error) {
		state, now := column.Decided(d), column.Millis(d.Now)
		out, err = clearance(ctx, q, decideClearance, d.ID, state, d.Session[:], now)
		if !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		there, err := clearance(ctx, q, readClearance, d.ID, now)
		if err != nil {
			return err
		}
		var live bool
		if err = one(ctx, q, []any{&live}, deciding, d.Session[:], now); err != nil {
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
	err = s.do(ctx, "WaitingClearances", func(ctx context.Context, q querier) error {
		out, err = each(ctx, q, func(row pgx.CollectableRow) (storage.Clearance, error) {
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
func rebind(ctx context.Context, q querier, a storage.Approval) error {
	if a.Clearance == "" {
		return nil
	}
	there, err := clearance(ctx, q, readClearance, a.Clearance, column.Millis(a.Now))
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	moved, may := column.Rebound(there, a)
	if !may {
		return nil
	}
	key := moved.Key()
	_, err = exec(ctx, q, rebindClearance, moved.ID, key[:], moved.GrantID, column.Millis(a.Now))
	return err
}
