package postgres

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

const (
	// defaultConns is chosen so that six replicas fit into PostgreSQL's default of 100, for any
	// number of processors. A refresh needs a connection for a few milliseconds.
	defaultConns = 16

	// asidePart is the fraction of the connections that administrators' queries may use together.
	asidePart = 4

	// idleFor is how long a connection may be idle before it is checked. The server then has
	// answerWithin to answer.
	idleFor      = time.Second
	answerWithin = 2 * time.Second

	// dropEvery limits how often all connections are replaced.
	dropEvery = time.Second
	// fullFor is how long after PostgreSQL had no slot one caller tries again, and freeEvery how
	// often the others look for a free connection.
	fullFor   = time.Second
	freeEvery = 5 * time.Millisecond

	// closeWithin bounds how long closing a connection may take. pgconn and pgxpool have the same
	// bound.
	closeWithin = 15 * time.Second
)

// pool is the connections to the database.
type pool struct {
	*pgxpool.Pool
	asides   chan struct{}  // one per connection that serves contexts marked by storage.Aside
	detached chan struct{}  // one for each connection that is being closed outside the pool; see release
	closing  sync.WaitGroup // waits for these connections
	hosts    *hosts
	clock    *dbClock
	dropped  atomic.Int64 // when connections were last dropped, Unix nanoseconds
	noRoom   atomic.Bool  // a verb has found the disk full
	full     atomic.Int64 // until when PostgreSQL is assumed to have no slot
}

func connect(ctx context.Context, url string, o Options, bare *atomic.Bool) (*pool, error) {
	c, err := config(url, o)
	if err != nil {
		return nil, err
	}
	p := &pool{
		asides: make(chan struct{}, max(c.MaxConns/asidePart, 1)), detached: make(chan struct{}, c.MaxConns),
		hosts: &hosts{leads: map[[2]string]bool{}}, clock: &dbClock{own: o.Now},
	}
	c.BeforeConnect = func(_ context.Context, cc *pgx.ConnConfig) error {
		if bare.Load() {
			cc.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
		}
		p.hosts.prefer(cc)
		return nil
	}
	c.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		p.hosts.connected(conn)
		ctx, cancel := context.WithTimeout(ctx, answerWithin)
		defer cancel()
		if err := disableJIT(ctx, conn); err != nil {
			return err
		}
		return p.clock.measure(ctx, conn) // another host has another clock
	}
	c.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false } // acquire does
	c.AfterRelease = func(conn *pgx.Conn) bool {
		marks := conn.PgConn().CustomData()
		marks[releasedAt] = p.clock.own()
		return marks[doubtful] == nil
	}
	p.Pool, err = pgxpool.NewWithConfig(ctx, c)
	return p, err
}

// disableJIT turns off PostgreSQL's JIT compilation. Our statements read few rows, but a wrong row
// estimate can make PostgreSQL compile one for seconds. It runs SET, because PgBouncer rejects
// startup parameters that it does not know; the setting then applies to whichever session runs it.
// Servers without the setting have no JIT.
func disableJIT(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, "SET jit = off")
	if answer := (*pgconn.PgError)(nil); errors.As(err, &answer) {
		return nil
	}
	return err
}

func config(url string, o Options) (*pgxpool.Config, error) {
	c, err := pgxpool.ParseConfig(url) // its errors hide the password
	if err != nil {
		return nil, err
	}
	switch {
	case o.MaxConns > 0:
		c.MaxConns = o.MaxConns
	case !strings.Contains(url, "pool_max_conns"):
		c.MaxConns = defaultConns
	}
	params := c.ConnConfig.RuntimeParams
	if params["application_name"] == "" {
		params["application_name"] = "mcp-authd"
	}
	failOver(url, c.ConnConfig)
	c.ConnConfig.BuildContextWatcherHandler = func(p *pgconn.PgConn) ctxwatch.Handler { return &canceller{conn: p} }
	c.ConnConfig.OnNotice = noteReplication
	c.ConnConfig.Tracer = o.tracer
	return c, nil
}

// turn waits until a context marked by storage.Aside may have a connection, and returns the
// function that gives the place back.
func (p *pool) turn(ctx context.Context) (release func(), err error) {
	if !storage.IsAside(ctx) {
		return func() {}, nil
	}
	select {
	case p.asides <- struct{}{}:
		return func() { <-p.asides }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// acquire returns a connection whose server answers. It does not leave the check to pgxpool's
// PrepareConn, which would keep the slot of a failed connection until that is closed.
func (p *pool) acquire(ctx context.Context) (*pgxpool.Conn, error) {
	for {
		c, err := p.slot(ctx)
		if err != nil || p.answers(ctx, c.Conn()) {
			return c, err
		}
		c.Conn().PgConn().CustomData()[doubtful] = true
		p.release(c)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		p.drop() // the others have probably failed as well as this one
	}
}

// slot returns a connection. If PostgreSQL has no free slot, it waits for one of this pool's
// connections, so that excess callers queue and do not fail.
func (p *pool) slot(ctx context.Context) (c *pgxpool.Conn, err error) {
	for {
		if time.Now().UnixNano() < p.full.Load() && p.awaitFree(ctx) != nil {
			return nil, errors.Join(ctx.Err(), err)
		}
		c, err = p.Acquire(ctx)
		if state(err) != tooManyConnections {
			return c, err
		}
		p.full.Store(time.Now().Add(fullFor).UnixNano())
	}
}

const releasedAt = "released"

// answers reports whether the server still answers on a connection. It asks for the time if the
// connection was idle for a while.
func (p *pool) answers(ctx context.Context, conn *pgx.Conn) bool {
	released, used := conn.PgConn().CustomData()[releasedAt].(time.Time)
	if (!used || p.clock.own().Sub(released) < idleFor) && !p.clock.due() {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	err := p.clock.measure(ctx, conn)
	p.distrust(ctx, conn)
	return err == nil
}

// distrust makes new connections try the server of conn last if neither a statement nor its
// cancellation was answered before ctx ended. pgconn closes the connection in that case.
func (p *pool) distrust(ctx context.Context, conn *pgx.Conn) {
	if ctx.Err() != nil && conn.IsClosed() && conn.PgConn().CustomData()[doubtful] != nil {
		p.hosts.markSilent(conn)
	}
}

// release returns a connection to the pool, and takes out a closed one. pgxpool would keep its slot
// for up to closeWithin, so a hung server could hold every slot while a standby is promoted. At
// most MaxConns connections are closed outside the pool, which bounds how many a hung server can
// collect.
func (p *pool) release(c *pgxpool.Conn) {
	if !c.Conn().IsClosed() {
		c.Release()
		return
	}
	conn := c.Conn().PgConn()
	// The canceller may have removed pgconn's deadline.
	_ = conn.Conn().SetDeadline(time.Now().Add(closeWithin)) // it fails if the connection is closed
	select {
	case p.detached <- struct{}{}:
	default:
		c.Release()
		return
	}
	p.closing.Go(func() {
		<-conn.CleanupDone()
		<-p.detached
	})
	c.Hijack()
}

// Close waits for running verbs and closes the connections.
func (p *pool) Close() {
	p.Pool.Close()
	p.closing.Wait()
}

// awaitFree waits until a connection is idle, or it is this caller's turn to try for another.
func (p *pool) awaitFree(ctx context.Context) error {
	for {
		until := p.full.Load()
		now := time.Now()
		if p.Stat().IdleConns() > 0 ||
			now.UnixNano() > until && p.full.CompareAndSwap(until, now.Add(fullFor).UnixNano()) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(freeEvery):
		}
	}
}

// doubt drops the connections if an error shows that their server is no longer the primary, or does
// not answer. It also remembers that a disk is full.
func (p *pool) doubt(ctx context.Context, err error) {
	if state(err) == diskFull {
		p.noRoom.Store(true)
	}
	if state(err) == readOnly || errors.Is(ctx.Err(), context.DeadlineExceeded) {
		p.drop()
	}
}

// drop closes and replaces every connection, immediately or when its verb has ended.
func (p *pool) drop() {
	last, now := p.dropped.Load(), p.clock.own().UnixNano()
	if now-last > int64(dropEvery) && p.dropped.CompareAndSwap(last, now) {
		p.Reset()
	}
}
