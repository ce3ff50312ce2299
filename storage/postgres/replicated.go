package postgres

import (
	"context"
	"errors"
	"math/rand/v2"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// errNotReplicated: PostgreSQL has committed, and has not seen the commit replicated as
// synchronous_commit demands, because the wait for it was cancelled. It calls that a
// success. A standby that is promoted now has never heard of it, so the outcome is unknown.
var errNotReplicated = errors.New(
	"committed, and not replicated as synchronous_commit demands: a failover would undo it",
)

const unreplicated = "unreplicated"

// noteReplication is told every notice of the database, and marks the connection.
func noteReplication(c *pgconn.PgConn, n *pgconn.Notice) {
	if gaveUpReplication(n) {
		c.CustomData()[unreplicated] = true
	}
}

// gaveUpReplication knows the warning by where it comes from: its text is in the language
// of lc_messages, and its code is that of any warning.
func gaveUpReplication(n *pgconn.Notice) bool {
	return n.Code == warning && (n.Routine == "SyncRepWaitForLSN" || n.File == "syncrep.c")
}

// replicated runs fn on a connection. Whatever it says of what it found or did, what it rests
// on may be undone when one of its commits was not replicated.
func replicated(c *pgx.Conn, fn func() error) error {
	marks := c.PgConn().CustomData()
	delete(marks, unreplicated)
	err := fn()
	if marks[unreplicated] != nil {
		return errNotReplicated
	}
	return err
}

// settlements is how many rows settle spreads its writes over: one row would be what all who
// settle at once wait for, and at serializable isolation what they fail on.
const settlements = 256

// settle is for a verb that finds done what it was to do, and says so. It writes all the
// same: its commit then waits until everything before it is replicated. Else the
// second try of a verb whose first one was not replicated would acknowledge it.
func settle(ctx context.Context, q querier) error {
	_, err := q.Exec(ctx,
		"INSERT INTO settings (name, value) VALUES ('settled:' || $1::int, '') ON CONFLICT (name) DO UPDATE SET value = excluded.value",
		rand.IntN(settlements))
	return err
}

// ensure runs statements that end something, and settles when all of it had ended before.
func ensure(ctx context.Context, q querier, statements ...statement) error {
	var total int64
	for _, st := range statements {
		n, err := exec(ctx, q, st.sql, st.args...)
		if err != nil {
			return err
		}
		total += n
	}
	if total > 0 {
		return nil
	}
	return settle(ctx, q)
}
