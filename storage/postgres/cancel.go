package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// cancelWithin bounds how long PostgreSQL may take to cancel what was given up here.
const cancelWithin = time.Second

// canceller cancels a statement on the server when it is given up here: left running there, it would hold its locks.
// The connection is free again when PostgreSQL has taken the request. The handler of pgconn does not wait for that,
// and a request that comes late cancels the next statement of the connection, which is another caller's.
type canceller struct {
	conn   *pgconn.PgConn
	over   chan struct{} // closed when the statement has ended
	taken  chan struct{} // closed when the request was taken, or is given up
	doubts bool          // it may still come; read after taken is closed
}

// HandleCancel implements ctxwatch.Handler.
func (c *canceller) HandleCancel(context.Context) {
	c.over, c.taken, c.doubts = make(chan struct{}), make(chan struct{}), false
	_ = c.conn.Conn().SetDeadline(time.Now().Add(cancelWithin)) // it fails when the connection is closed
	go func() {
		defer close(c.taken)
		select {
		case <-c.over:
			return
		default:
		}
		ctx, cancel := context.WithTimeout(context.Background(), cancelWithin)
		defer cancel()
		err := c.conn.CancelRequest(ctx) // nil as well when the answer did not come in time
		c.doubts = err != nil || ctx.Err() != nil
	}()
}

// HandleUnwatchAfterCancel implements ctxwatch.Handler.
func (c *canceller) HandleUnwatchAfterCancel() {
	close(c.over)
	<-c.taken
	_ = c.conn.Conn().SetDeadline(time.Time{}) // likewise
	if c.doubts {
		c.conn.CustomData()[doubtful] = true
	}
}

// doubtful marks a connection that is not used again: a request to cancel may still come, or the server did not
// answer.
const doubtful = "doubtful"
