package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// cancelWithin limits how long PostgreSQL may take to cancel an abandoned statement.
const cancelWithin = time.Second

// canceller cancels a statement on the server when its caller gives up; left running, it would keep
// its locks. The connection is free again once PostgreSQL has accepted the request. The handler of
// pgconn does not wait for that, so a late request could cancel the next statement, which is
// another caller's.
type canceller struct {
	conn   *pgconn.PgConn
	over   chan struct{} // closed when the statement has ended
	taken  chan struct{} // closed when the request was accepted, or is given up
	doubts bool          // the request may still arrive; read after taken is closed
}

// HandleCancel implements ctxwatch.Handler.
func (c *canceller) HandleCancel(context.Context) {
	c.over, c.taken, c.doubts = make(chan struct{}), make(chan struct{}), false
	_ = c.conn.Conn().SetDeadline(time.Now().Add(cancelWithin)) // it fails if the connection is closed
	go func() {
		defer close(c.taken)
		select {
		case <-c.over:
			return
		default:
		}
		ctx, cancel := context.WithTimeout(context.Background(), cancelWithin)
		defer cancel()
		err := c.conn.CancelRequest(ctx) // also nil if the answer did not come in time
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

// doubtful marks a connection that must not be used again, because a cancel request may still
// arrive, or the server did not answer.
const doubtful = "doubtful"
