package auditlog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

const (
	// batchEvery is the maximum time that an entry waits for others in its batch.
	batchEvery = 200 * time.Millisecond
	batchSize  = 256
	// maxBatch limits a batch when many entries wait.
	maxBatch = 16 * batchSize
	// maxWaiting limits the entries in memory, and maxAside the files with more. Beyond that,
	// entries are lost and counted. asideAt leaves room for new entries during a call to the store.
	maxWaiting   = 65536
	asideAt      = maxWaiting / 4
	maxAside     = 256
	storeTimeout = 10 * time.Second
	retryEvery   = time.Second
	drainTime    = 5 * time.Second
	tellEvery    = time.Minute
	// lookEvery is how often a Writer looks for files of other processes.
	lookEvery = time.Minute
)

// Options configure a Writer.
type Options struct {
	Store storage.AuditLog
	Dir   string           // directory for waiting entries; "" keeps them in memory only
	Now   func() time.Time // the clock of the store
	Log   *slog.Logger
	// Full writes an entry for each routine event, instead of counting similar ones (see
	// audit.Routine), and all attributes (see spared).
	Full bool
	// MAC opens the MAC of the log. Entries wait while it fails.
	MAC func(context.Context) (*MAC, error)
}

// Writer appends events to the log in batches. It implements audit.Log: adding an event takes
// microseconds, and never waits for the store. A file keeps waiting entries if the process ends.
type Writer struct {
	o      Options
	signal chan struct{}
	aside  int // files set aside since the store last took entries; only used by Run

	mu       sync.Mutex // guards the fields below
	waiting  []numbered
	next     int64         // number of the next entry
	appended int64         // entries with lower numbers are in the log
	progress chan struct{} // closed and replaced on progress
	spool    spool
	sums     sums
	beginAt  time.Time            // when to retry the spool after a failure
	id       string               // of the writer in the store, and of the spool
	base     int64                // number of the first entry under this id
	turn     int                  // how often waiting entries were set aside
	unkept   int64                // entries with lower numbers may be in memory only
	failing  error                // why the last append failed, or nil
	lost     int64                // since the start
	missing  int64                // lost entries that the log does not report yet
	missedAt time.Time            // when the first of the missing entries was lost
	told     map[string]time.Time // when each warning was last logged

	appender appender // only used by Run
}

// NewWriter returns a Writer. Entries wait until Run.
func NewWriter(o Options) *Writer {
	id := newWriterID()
	return &Writer{
		o: o, signal: make(chan struct{}, 1), progress: make(chan struct{}), id: id,
		spool: spool{dir: o.Dir, suffix: spoolSuffix}, sums: sums{spool: spool{dir: o.Dir, suffix: sumsSuffix}},
		told:     map[string]time.Time{},
		appender: appender{store: o.Store, now: o.Now, id: id, open: o.MAC},
	}
}

// Add implements audit.Log.
func (w *Writer) Add(ctx context.Context, event string, attrs []slog.Attr) {
	if !Keeps(event) || !w.o.Full && audit.Routine(event, attrs) && w.counted(event, attrs) {
		return
	}
	if !w.o.Full {
		attrs = spared(event, attrs)
	}
	place, err := w.put(entry(w.o.Now(), event, attrs))
	audit.Await(ctx, func(ctx context.Context) error {
		if err != nil {
			return err
		}
		return w.wait(ctx, place)
	})
}

var (
	errFull  = errors.New("the audit log takes no more entries: the store has not taken those that wait")
	errAside = errors.New("an entry is not in the audit log yet: it waits in a file")
)

// place identifies a waiting entry.
type place struct {
	number int64
	turn   int
}

func (w *Writer) put(e storage.AuditEntry) (place, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.add(e)
}

func (w *Writer) add(e storage.AuditEntry) (place, error) {
	if len(w.waiting) >= maxWaiting {
		if w.missing == 0 {
			w.missedAt = w.o.Now()
		}
		w.lost++
		w.missing++
		return place{}, errFull
	}
	return w.hold(e), nil
}

// hold adds an entry to the waiting ones without checking for room.
func (w *Writer) hold(e storage.AuditEntry) place {
	number := w.next
	w.next++
	w.waiting = append(w.waiting, numbered{number, e})
	w.keep(number, e.Leaf)
	if len(w.waiting) == batchSize {
		w.hurry()
	}
	return place{number, w.turn}
}

// keep writes a waiting entry to the spool.
func (w *Writer) keep(number int64, leaf []byte) {
	kept, err := false, error(nil)
	if !w.o.Now().Before(w.beginAt) {
		if err = w.spool.begin(w.id); err != nil {
			w.beginAt = w.o.Now().Add(lookEvery)
		} else if w.spool.file != nil {
			err = w.spool.add(number-w.base, leaf)
			kept = err == nil
		}
	}
	if !kept {
		w.unkept = number + 1
	}
	w.spooled(err)
}

// spooled logs that entries wait in memory only, if err is not nil.
func (w *Writer) spooled(err error) {
	if err != nil {
		w.warn("entries of the audit log wait in memory alone, and are lost when the process is killed: "+
			"they cannot be written to a file", "directory", w.o.Dir, "error", err)
	}
}

// setAside leaves many waiting entries to their file until the store is back, and begins another.
func (w *Writer) setAside() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.waiting) < asideAt || w.waiting[0].number < w.unkept || w.aside == maxAside {
		return
	}
	w.spooled(w.spool.leave())
	w.aside++
	w.warn("entries of the audit log wait in a file until the store takes them", "entries", len(w.waiting),
		"file", w.spool.path)
	w.id, w.base, w.waiting = newWriterID(), w.next, nil
	w.appender = appender{
		store: w.o.Store, now: w.o.Now, id: w.id, base: w.next, mark: w.next, open: w.o.MAC, mac: w.appender.mac,
	}
	w.turn++
	w.progressed()
}

func (w *Writer) progressed() {
	w.appended = w.appender.mark
	close(w.progress)
	w.progress = make(chan struct{})
}

// hurry makes Run append now.
func (w *Writer) hurry() {
	select {
	case w.signal <- struct{}{}:
	default:
	}
}

// wait waits until an entry is in the log.
func (w *Writer) wait(ctx context.Context, p place) error {
	for {
		w.mu.Lock()
		aside, done, progress := w.turn != p.turn, w.appended > p.number, w.progress
		w.mu.Unlock()
		switch {
		case aside:
			return errAside
		case done:
			return nil
		}
		w.hurry()
		select {
		case <-progress:
		case <-ctx.Done():
			return fmt.Errorf("an entry is not in the audit log yet: %w", ctx.Err())
		}
	}
}

// Ready returns the reason why the store takes no entries, or nil.
func (w *Writer) Ready() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.waiting) >= maxWaiting {
		return errFull
	}
	return w.failing
}

// taken records the progress of the appender, and its error.
func (w *Writer) taken(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failing = err
	for len(w.waiting) > 0 && w.waiting[0].number < w.appender.mark {
		w.waiting = w.waiting[1:]
	}
	w.progressed()
	if w.id != w.appender.id {
		w.o.Log.Error("the database has lost entries of the audit log that it had taken: it was put back to an earlier "+
			"state, or changed", "writer", w.id)
		w.id, w.base = w.appender.id, w.appender.base
		if w.spool.file != nil {
			w.spooled(w.spool.renew(w.id, w.base, w.waiting))
		}
		return
	}
	w.spooled(w.spool.tidy(w.id, w.base, w.waiting))
}

// State returns how many entries wait, and how many were lost since the start.
func (w *Writer) State() (waiting int, lost int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.waiting), w.lost
}

// Run appends entries until ctx ends, and then the remaining ones for up to drainTime.
func (w *Writer) Run(ctx context.Context) {
	tick := time.NewTicker(batchEvery)
	defer tick.Stop()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	w.takeLeft(ctx)
	for {
		select {
		case <-tick.C:
		case <-w.signal:
		case <-look.C:
			w.takeLeft(ctx)
		case <-ctx.Done():
			w.end(context.WithoutCancel(ctx))
			return
		}
		w.closeSums(w.o.Now())
		switch {
		case !w.flush(ctx):
			select {
			case <-time.After(retryEvery):
			case <-ctx.Done():
			}
		case w.aside > 0:
			w.aside = 0
			w.takeLeft(ctx)
		}
	}
}

// end appends the remaining entries, and logs the loss of others.
func (w *Writer) end(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, drainTime)
	defer cancel()
	w.endSums(ctx)
	w.flush(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.spooled(w.spool.end())
	if w.missing > 0 {
		w.o.Log.Error("entries of the audit log are lost, and the log does not count them: the store could not take "+
			"them in time", "entries", w.missing, "since", w.missedAt)
	}
	switch waiting := len(w.waiting); {
	case waiting == 0:
	case w.spool.size > 0:
		w.o.Log.Warn("entries of the audit log wait in a file for the next start: the store could not take them",
			"entries", waiting, "file", w.spool.path)
	default:
		w.o.Log.Error("entries of the audit log are lost: the store could not take them", "entries", waiting)
	}
}

// flush appends the waiting entries, and reports whether it succeeded.
func (w *Writer) flush(ctx context.Context) bool {
	for {
		w.tellLoss()
		w.mu.Lock()
		batch := w.waiting[:min(len(w.waiting), maxBatch)]
		w.mu.Unlock()
		if len(batch) == 0 {
			return true
		}
		err := w.appender.append(ctx, batch)
		w.taken(err)
		w.setAside()
		if err != nil {
			w.mu.Lock()
			w.warn("entries of the audit log wait: the store does not take them", "error", err)
			w.mu.Unlock()
			return false
		}
	}
}

// tellLoss adds an entry about lost entries to the log (OP-01).
func (w *Writer) tellLoss() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.missing == 0 {
		return
	}
	w.warn("entries of the audit log were lost: the store could not take them in time", "entries", w.lost)
	if len(w.waiting) < maxWaiting {
		w.hold(entry(w.o.Now(), audit.AuditLost,
			[]slog.Attr{slog.Int64("entries", w.missing), slog.Time("since", w.missedAt)}))
		w.missing = 0
	}
}

// warn logs a warning at most once a minute per text.
func (w *Writer) warn(what string, attrs ...any) {
	if now := w.o.Now(); now.Sub(w.told[what]) >= tellEvery {
		w.told[what] = now
		w.o.Log.Warn(what, attrs...)
	}
}
