package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// measureEvery is how long a measurement of the database's clock is used.
	measureEvery = 15 * time.Second
	// sameClock is the tolerated difference of two readings of one clock, in addition to their
	// duration.
	sameClock = 100 * time.Millisecond
	// leap is the smallest difference that shows that a clock was set or a machine slept.
	leap = time.Second
)

// dbClock is the database's clock, which all replicas use. Between two measurements it follows the
// monotonic clock of this process, regardless of how that is set.
type dbClock struct {
	own func() time.Time

	mu    sync.Mutex    // guards the fields below
	at    time.Time     // of the last measurement, by this process's clock
	asked time.Time     // when a measurement was last due
	ahead time.Duration // how far the database's clock is ahead
}

// correct returns the database's time for t, a time of this process's clock.
func (c *dbClock) correct(t time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at.IsZero() {
		return t
	}
	return c.at.Round(0).Add(t.Sub(c.at)).Add(c.ahead)
}

func (c *dbClock) now() time.Time { return c.correct(c.own()) }

// skew returns how far the database's clock is ahead of this process's.
func (c *dbClock) skew() time.Duration {
	t := c.own()
	return c.correct(t).Sub(t.Round(0))
}

// due reports, to one caller a second, that a measurement is due: the last one is old, the clock
// was set, or the machine slept.
func (c *dbClock) due() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.own()
	ran, shown := t.Sub(c.at), t.Round(0).Sub(c.at.Round(0))
	if !c.at.IsZero() && ran < measureEvery && (shown-ran).Abs() < leap ||
		!c.asked.IsZero() && t.Sub(c.asked) < time.Second {
		return false
	}
	c.asked = t
	return true
}

// measure asks the database for the time with the simple protocol, which also works with a pooler
// that loses prepared statements.
func (c *dbClock) measure(ctx context.Context, conn *pgx.Conn) error {
	sent := c.own()
	rows, err := conn.PgConn().Exec(ctx, "SELECT extract(epoch FROM clock_timestamp())").ReadAll()
	if err != nil {
		return err
	}
	if len(rows) != 1 || len(rows[0].Rows) != 1 {
		return errors.New("the database did not tell the time: it returned no row")
	}
	seconds, err := strconv.ParseFloat(string(rows[0].Rows[0][0]), 64)
	if err != nil {
		return fmt.Errorf("the database did not tell the time: %w", err)
	}
	c.note(sent, c.own(), time.UnixMicro(int64(seconds*1e6)))
	return nil
}

// note stores a measurement: the database's clock said theirs between sent and got. If it agrees
// with the last one within its accuracy, the last one stays, so that time runs evenly.
func (c *dbClock) note(sent, got, theirs time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	took := got.Sub(sent)
	middle := got.Add(-took / 2)
	ahead := theirs.Sub(middle.Round(0))
	c.at = middle
	if (ahead - c.ahead).Abs() > took/2+sameClock {
		c.ahead = ahead
	}
}

// inTime, followed by the number of a parameter, is the condition that a statement does not run
// late. While a server hangs, a statement waits in a socket. If it ran long after its time, it
// would look like a second use to the client, which has tried again meanwhile.
const inTime = "extract(epoch FROM clock_timestamp()) * 1000 <= "

// deadline returns until when a verb that begins now may act: a little longer than its caller
// waits, and at most half of a grace that begins with it.
func (s *Store) deadline(grace time.Duration) int64 {
	limit := s.timeout + 2*time.Second
	if grace > 0 {
		limit = min(limit, grace/2)
	}
	return s.pool.clock.now().Add(limit).UnixMilli()
}

// Correct implements storage.Clock.
func (s *Store) Correct(t time.Time) time.Time { return s.pool.clock.correct(t) }

// Skew implements storage.Clock.
func (s *Store) Skew() time.Duration { return s.pool.clock.skew() }
