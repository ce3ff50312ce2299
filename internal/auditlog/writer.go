package auditlog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/storage"
)

const (
	// batchEvery is how long an entry waits at most for others to be appended with.
	batchEvery = 200 * time.Millisecond
	batchSize  = 256
	// maxBatch is how many are appended at once after the store was away.
	maxBatch = 4 * batchSize
	// maxWaiting bounds what waits in memory. What comes beyond it is lost, and counted.
	maxWaiting   = 16384
	storeTimeout = 10 * time.Second
	retryEvery   = time.Second
	drainTime    = 5 * time.Second
	tellEvery    = time.Minute
	// lookEvery is how often it is looked for what other processes have left.
	lookEvery = time.Minute
	// contended is how often a batch is tried at once when other replicas append as well.
	contended = 16
)

// Options are what a Writer stands on.
type Options struct {
	Store storage.AuditLog
	Dir   string           // where entries are written while they wait; "": they wait in memory alone
	Now   func() time.Time // the clock of the store
	Log   *slog.Logger
}

// Writer appends events to the log, in batches. It implements audit.Log: adding an event takes
// microseconds, and never waits for the store. What was added outlives the process in a file.
type Writer struct {
	o      Options
	signal chan struct{}

	mu       sync.Mutex // guards what follows
	waiting  []numbered
	next     int64         // the number of the next entry
	appended int64         // entries with lower numbers are in the log
	progress chan struct{} // closed when it is more
	spool    spool
	beginAt  time.Time // when the spool can be begun again after a failure
	id       string    // of the writer at the store, and of the spool
	base     int64     // the number of the first entry under this id
	failing  error     // why nothing was appended last; nil: it was
	lost     int64
	told     time.Time // when a loss or a failure was last logged

	appender appender // of Run alone
}

// NewWriter returns a writer. What is added waits until Run.
func NewWriter(o Options) *Writer {
	id := newWriterID()
	return &Writer{
		o: o, signal: make(chan struct{}, 1), progress: make(chan struct{}), id: id, spool: spool{dir: o.Dir},
		appender: appender{store: o.Store, now: o.Now, id: id},
	}
}

// Add implements audit.Log.
func (w *Writer) Add(ctx context.Context, event string, attrs []slog.Attr) {
	if !Keeps(event) {
		return
	}
	number, err := w.put(entry(w.o.Now(), event, attrs))
	audit.Await(ctx, func(ctx context.Context) error {
		if err != nil {
			return err
		}
		return w.wait(ctx, number)
	})
}

var errFull = errors.New("the audit log takes no more entries: the store has not taken those that wait")

// put has an entry wait, and returns its number.
func (w *Writer) put(e storage.AuditEntry) (number int64, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.waiting) >= maxWaiting {
		w.lost++
		return 0, errFull
	}
	number = w.next
	w.next++
	w.waiting = append(w.waiting, numbered{number, e})
	w.keep(number, e.Leaf)
	if len(w.waiting) == batchSize {
		w.hurry()
	}
	return number, nil
}

// keep writes an entry that waits into the spool.
func (w *Writer) keep(number int64, leaf []byte) {
	if w.o.Now().Before(w.beginAt) {
		return
	}
	err := w.spool.begin(w.id)
	if err != nil {
		w.beginAt = w.o.Now().Add(lookEvery)
	} else if w.spool.file != nil {
		err = w.spool.add(number-w.base, leaf)
	}
	w.spooled(err)
}

// spooled logs that entries wait in memory alone.
func (w *Writer) spooled(err error) {
	if err != nil && w.due() {
		w.o.Log.Warn("entries of the audit log wait in memory alone, and are lost when the process is killed: "+
			"they cannot be written to a file", "directory", w.o.Dir, "error", err)
	}
}

// hurry has Run append now.
func (w *Writer) hurry() {
	select {
	case w.signal <- struct{}{}:
	default:
	}
}

// wait returns when an entry is in the log.
func (w *Writer) wait(ctx context.Context, number int64) error {
	for {
		w.mu.Lock()
		done, progress := w.appended > number, w.progress
		w.mu.Unlock()
		if done {
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

// Ready returns why the store takes no entries; nil when it does.
func (w *Writer) Ready() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.waiting) >= maxWaiting {
		return errFull
	}
	return w.failing
}

// taken notes how far the appender has come, and what has stopped it.
func (w *Writer) taken(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failing = err
	for len(w.waiting) > 0 && w.waiting[0].number < w.appender.mark {
		w.waiting = w.waiting[1:]
	}
	w.appended = w.appender.mark
	close(w.progress)
	w.progress = make(chan struct{})
	if w.id != w.appender.id {
		w.id, w.base = w.appender.id, w.appender.base
		if w.spool.file != nil {
			w.spooled(w.spool.renew(w.id, w.base, w.waiting))
		}
		return
	}
	w.spooled(w.spool.tidy(w.id, w.base, w.waiting))
}

// State is how many entries wait, and how many were lost since the start.
func (w *Writer) State() (waiting int, lost int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.waiting), w.lost
}

// Run appends until ctx ends, and then what is left, for some seconds.
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
		if !w.flush(ctx) {
			select {
			case <-time.After(retryEvery):
			case <-ctx.Done():
			}
		}
	}
}

// end appends what is left, and says what it could not.
func (w *Writer) end(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, drainTime)
	defer cancel()
	w.flush(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.spooled(w.spool.end())
	switch waiting := len(w.waiting); {
	case waiting == 0:
	case w.spool.size > 0:
		w.o.Log.Warn("entries of the audit log wait in a file for the next start: the store could not take them",
			"entries", waiting, "file", w.spool.path)
	default:
		w.o.Log.Error("entries of the audit log are lost: the store could not take them", "entries", waiting)
	}
}

// flush appends what waits, and reports whether it could.
func (w *Writer) flush(ctx context.Context) bool {
	w.tellLoss()
	for {
		w.mu.Lock()
		batch := w.waiting[:min(len(w.waiting), maxBatch)]
		w.mu.Unlock()
		if len(batch) == 0 {
			return true
		}
		err := w.appender.append(ctx, batch)
		w.taken(err)
		if err != nil {
			w.tell("entries of the audit log wait: the store does not take them", "error", err)
			return false
		}
	}
}

// tellLoss logs what was lost, when something more was.
func (w *Writer) tellLoss() {
	if _, lost := w.State(); lost > 0 {
		w.tell("entries of the audit log were lost: the store could not take them in time", "entries", lost)
	}
}

// tell logs a warning once a minute.
func (w *Writer) tell(what string, attrs ...any) {
	w.mu.Lock()
	due := w.due()
	w.mu.Unlock()
	if due {
		w.o.Log.Warn(what, attrs...)
	}
}

// due reports whether a warning can be logged.
func (w *Writer) due() bool {
	now := w.o.Now()
	due := now.Sub(w.told) >= tellEvery
	if due {
		w.told = now
	}
	return due
}
