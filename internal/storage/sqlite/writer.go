package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	driver "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"
)

// maxBatch limits the verbs that share one transaction, and so how long the first of them waits for
// the last.
const maxBatch = 64

// writer owns the only connection that writes. If it is free, a verb runs in the goroutine of its
// caller, because waking another one would take longer than most verbs. Otherwise verbs wait. The
// writer's goroutine takes all of them, runs them in one transaction, commits once, and only then
// replies. So concurrent verbs share one fsync, and nil always means durable.
//
// A verb may run twice, if another verb of its batch failed half-way. It returns the result of its
// last run.
type writer struct {
	db     *sql.DB
	conn   *conn
	turn   chan struct{} // holds a value while conn is in use
	jobs   chan *job     // unbuffered, so that no verb is left behind at shutdown
	hasty  bool          // commits do not wait for the disk now
	quit   chan struct{}
	closed chan struct{}
	once   sync.Once
	err    error // from closing
}

// job is a submitted verb. Its error is nil only after the COMMIT.
type job struct {
	run      func(*conn) error
	fleeting bool        // it need not survive a crash of the machine
	taken    atomic.Bool // by the writer, to run it, or by the caller, to give up
	err      error
	done     chan struct{}
}

func startWriter(ctx context.Context, db *sql.DB) (*writer, error) {
	db.SetMaxOpenConns(1)
	c, err := firstConn(ctx, db)
	if err != nil {
		return nil, joinErr(err, db.Close())
	}
	w := &writer{
		db: db, conn: c, turn: make(chan struct{}, 1), jobs: make(chan *job), quit: make(chan struct{}),
		closed: make(chan struct{}),
	}
	go w.loop()
	return w, nil
}

// firstConn waits for other processes that open the same new file. Only one can make it a WAL
// database. SQLite returns busy to the others without waiting busy_timeout, because two that waited
// for each other would wait forever.
func firstConn(ctx context.Context, db *sql.DB) (c *conn, err error) {
	enough := time.After(5 * time.Second) // a start takes less time, so a lock is held
	for {
		var busy *driver.Error
		if c, err = newConn(ctx, db); !errors.As(err, &busy) || busy.Code()&0xff != lib.SQLITE_BUSY {
			return c, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-enough:
			return nil, err
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// do runs fn in a transaction. If the caller's context ends before the verb begins, the verb is not
// carried out. Once it has begun, the caller gets its true result, which takes one commit at most.
func (w *writer) do(ctx context.Context, fn func(*conn) error) error {
	return w.submit(ctx, &job{run: fn, done: make(chan struct{})})
}

// doFleeting is do for data that need not survive a crash of the machine. It does not wait for the
// disk, unless other verbs of its batch do.
func (w *writer) doFleeting(ctx context.Context, fn func(*conn) error) error {
	return w.submit(ctx, &job{run: fn, fleeting: true, done: make(chan struct{})})
}

func (w *writer) submit(ctx context.Context, j *job) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case w.turn <- struct{}{}:
		w.alone(j)
		return j.err
	default:
	}
	select {
	case w.jobs <- j:
	case <-ctx.Done():
		return ctx.Err()
	case <-w.quit:
		return errClosed
	}
	select {
	case <-j.done:
	case <-ctx.Done():
		if j.taken.CompareAndSwap(false, true) {
			return ctx.Err()
		}
		<-j.done
	}
	return j.err
}

// alone runs one verb for its caller, who holds the turn.
func (w *writer) alone(j *job) {
	ended := false
	defer func() {
		if !ended { // the verb panicked
			w.conn.exec("ROLLBACK")
		}
		<-w.turn
	}()
	w.commit([]*job{j})
	ended = true
}

func (w *writer) loop() {
	defer close(w.closed)
	batch := make([]*job, 0, maxBatch)
	for {
		select {
		case j := <-w.jobs:
			w.turn <- struct{}{}
			for batch = w.gather(append(batch[:0], j)); len(batch) > 0; batch = w.gather(batch[:0]) {
				w.commit(batch)
			}
			<-w.turn
		case <-w.quit:
			return
		}
	}
}

// gather adds the verbs that are waiting now. It never waits for more: under load they arrived
// while the last batch was written.
func (w *writer) gather(batch []*job) []*job {
	for len(batch) < maxBatch {
		select {
		case j := <-w.jobs:
			batch = append(batch, j)
		default:
			return batch
		}
	}
	return batch
}

// commit runs the verbs whose callers still wait, and replies to them. It first tries without
// savepoints, which cost two statements per verb. A failed verb has rarely changed anything, and
// only then must it be undone.
func (w *writer) commit(batch []*job) {
	live := batch[:0]
	for _, j := range batch {
		if j.taken.CompareAndSwap(false, true) {
			live = append(live, j)
		} else {
			close(j.done) // the caller has gone
		}
	}
	if len(live) == 0 {
		return
	}
	err := w.transact(live, w.run)
	if errors.Is(err, errUndo) {
		w.conn.exec("ROLLBACK")
		err = w.transact(live, w.savepoint)
	}
	if err != nil {
		w.conn.exec("ROLLBACK") // fails when SQLite has rolled back by itself
		for _, j := range live {
			j.err = err
		}
	}
	for _, j := range live {
		close(j.done)
	}
}

// transact runs the batch. Its error is the transaction's and applies to every verb. The error of
// one verb stays with that verb.
func (w *writer) transact(batch []*job, run func(*job) error) error {
	if err := w.haste(!slices.ContainsFunc(batch, func(j *job) bool { return !j.fleeting })); err != nil {
		return err
	}
	if _, err := w.conn.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	for _, j := range batch {
		if err := run(j); err != nil {
			return err
		}
	}
	_, err := w.conn.exec("COMMIT")
	return err
}

// haste sets whether the following commits wait for the disk. A commit that waits also makes all
// earlier ones durable. With either setting, a crash leaves the state after some commit, never half
// of one.
func (w *writer) haste(hasty bool) error {
	if hasty == w.hasty {
		return nil
	}
	pragma := "PRAGMA synchronous = FULL"
	if hasty {
		pragma = "PRAGMA synchronous = NORMAL"
	}
	// The pragma takes effect when it is compiled, so it is not kept as a prepared statement.
	_, err := w.conn.c.ExecContext(context.Background(), pragma)
	if err == nil {
		w.hasty = hasty
	}
	return err
}

// errUndo: a verb failed and left changes in a shared transaction.
var errUndo = errors.New("sqlite: a verb of the batch must be undone")

// run runs one verb in the shared transaction. After an error of SQLite itself, the transaction may
// no longer exist.
func (w *writer) run(j *job) error {
	w.conn.dirty = false
	j.err = j.run(w.conn)
	var broken *driver.Error
	if j.err != nil && (w.conn.dirty || errors.As(j.err, &broken)) {
		return errUndo
	}
	return nil
}

// savepoint runs one verb so that its failure undoes only its own changes.
func (w *writer) savepoint(j *job) error {
	if _, err := w.conn.exec("SAVEPOINT verb"); err != nil {
		return err
	}
	if j.err = j.run(w.conn); j.err != nil {
		if _, err := w.conn.exec("ROLLBACK TO verb"); err != nil {
			return err
		}
	}
	_, err := w.conn.exec("RELEASE verb")
	return err
}

// close waits for the running batch.
func (w *writer) close() error {
	w.once.Do(func() {
		close(w.quit)
		<-w.closed
		w.turn <- struct{}{} // never taken out again
		w.err = joinErr(w.conn.close(), w.db.Close())
	})
	return w.err
}
