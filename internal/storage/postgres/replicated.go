package postgres

import (
	"context"
	"errors"
	"math/rand/v2"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// errNotReplicated: PostgreSQL has committed, but the wait for the replication that
// synchronous_commit demands was cancelled. PostgreSQL reports success. A standby that is promoted
// now does not have the commit, so the outcome is unknown.
var errNotReplicated = errors.New(
	"committed, and not replicated as synchronous_commit demands: a failover would undo it",
)

const unreplicated = "unreplicated"

// noteReplication receives every notice of the database, and marks the connection.
func noteReplication(c *pgconn.PgConn, n *pgconn.Notice) {
	if gaveUpReplication(n) {
		c.CustomData()[unreplicated] = true
	}
}

// gaveUpReplication recognises the warning by its origin. Its text is in the language of
// lc_messages, and all warnings share its code.
func gaveUpReplication(n *pgconn.Notice) bool {
	return n.Code == warning && (n.Routine == "SyncRepWaitForLSN" || n.File == "syncrep.c")
}

// replicated runs fn on a connection. It returns errNotReplicated if a commit was not replicated,
// because then fn's result may depend on a commit that a failover undoes.
func replicated(c *pgx.Conn, fn func() error) error {
	marks := c.PgConn().CustomData()
	delete(marks, unreplicated)
	err := fn()
	if marks[unreplicated] != nil {
		return errNotReplicated
	}
	return err
}

// settlements is the number of rows for settle's writes. With one row, all concurrent calls would
// wait for it, and at serializable isolation fail on it.
const settlements = 256

// settle is for a verb that finds its work already done. It still writes, so that its commit waits
// until everything before it is replicated. Otherwise the second try of a verb would acknowledge a
// first try that was not replicated.
func settle(ctx context.Context, q querier) error {
	_, err := q.Exec(ctx,
		"INSERT INTO settings (name, value) VALUES ('settled:' || $1::int, '') ON CONFLICT (name) DO UPDATE SET value = excluded.value",
		rand.IntN(settlements))
	return err
}

// ensure runs statements that end records, and settles if all had already ended.
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
