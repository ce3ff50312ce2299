package postgres

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// measureEvery is how long a measurement of the database's clock is relied upon.
	measureEvery = 15 * time.Second
	// sameClock is what two readings of one clock may differ by, beside the time they take.
	sameClock = 100 * time.Millisecond
	// leap is by how much a clock that was set, or a machine that slept, differs from one
	// that ran on.
	leap = time.Second
)

// dbClock knows the database's clock, by which all replicas judge. It goes by this process's
// own between two measurements, and by how that runs, not by how it is set.
type dbClock struct {
	own func() time.Time

	mu    sync.Mutex    // guards what follows
	at    time.Time     // of the last measurement, by our own clock
	asked time.Time     // when one was last due
	ahead time.Duration // what the database's is ahead of it
}

// correct returns what the database's clock says when our own one says t.
func (c *dbClock) correct(t time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at.IsZero() {
		return t
	}
	return c.at.Round(0).Add(t.Sub(c.at)).Add(c.ahead)
}

func (c *dbClock) now() time.Time { return c.correct(c.own()) }

// skew is how far the database's clock is ahead of what ours is set to.
func (c *dbClock) skew() time.Duration {
	t := c.own()
	return c.correct(t).Sub(t.Round(0))
}

// due reports, to one caller a second, that it is time to measure: the last one is old, or
// our clock was set, or the machine slept.
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

// measure asks the database for the time, by the simple protocol: a pooler that loses
// prepared statements answers too.
func (c *dbClock) measure(ctx context.Context, conn *pgx.Conn) error {
	sent := c.own()
	rows, err := conn.PgConn().Exec(ctx, "SELECT extract(epoch FROM clock_timestamp())").ReadAll()
	if err != nil {
		return err
	}
	if len(rows) != 1 || len(rows[0].Rows) != 1 {
		return fmt.Errorf("the database did not tell the time: %d results", len(rows))
	}
	seconds, err := strconv.ParseFloat(string(rows[0].Rows[0][0]), 64)
	if err != nil {
		return fmt.Errorf("the database did not tell the time: %w", err)
	}
	c.note(sent, c.own(), time.UnixMicro(int64(seconds*1e6)))
	return nil
}

// note keeps a measurement: the database's clock said theirs between sent and got. One that
// agrees with the last as well as it can leaves that alone, so that time runs evenly.
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

// inTime, and the number of a parameter, is the condition of a statement that must not run
// late: on a server that hangs it lies in a socket, and what it does in the name of a moment
// long gone would look like a second use to the client that meanwhile tries again.
const inTime = "extract(epoch FROM clock_timestamp()) * 1000 <= "

// deadline is until when a verb that begins now may act: a little longer than its caller
// waits for it, and no longer than half of a grace that begins with it.
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
