package auditlog

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
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
	// contended is how often a batch is tried at once when other replicas append as well.
	contended = 16
)

// Options are what a Writer stands on.
type Options struct {
	Store storage.AuditLog
	Now   func() time.Time // the clock of the store
	Log   *slog.Logger
}

// Writer appends events to the log, in batches. It implements audit.Log: adding an event takes
// microseconds, and never waits for the store.
type Writer struct {
	o      Options
	id     string // of this process at the store
	signal chan struct{}

	mu      sync.Mutex // guards what follows
	waiting []storage.AuditEntry
	lost    int64
	told    time.Time // when a loss or a failure was last logged

	// of Run alone
	edge *edge // nil: unknown
	mark int64 // how many of our entries are in the log
}

// NewWriter returns a writer. What is added waits until Run.
func NewWriter(o Options) *Writer {
	return &Writer{o: o, id: secrets.ID("awr_"), signal: make(chan struct{}, 1)}
}

// Add implements audit.Log.
func (w *Writer) Add(_ context.Context, event string, attrs []slog.Attr) {
	if Keeps(event) {
		w.put(record(entry(w.o.Now(), event, attrs)))
	}
}

func (w *Writer) put(e storage.AuditEntry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.waiting) >= maxWaiting {
		w.lost++
		return
	}
	w.waiting = append(w.waiting, e)
	if len(w.waiting) == batchSize {
		select {
		case w.signal <- struct{}{}:
		default:
		}
	}
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
	for {
		select {
		case <-tick.C:
		case <-w.signal:
		case <-ctx.Done():
			drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
			defer cancel()
			w.flush(drain)
			w.leave()
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

// leave says what the end of the server has left out.
func (w *Writer) leave() {
	if waiting, _ := w.State(); waiting > 0 {
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
		n, err := w.append(ctx, batch)
		w.mu.Lock()
		w.waiting = w.waiting[n:]
		w.mu.Unlock()
		if err != nil {
			w.tell("entries of the audit log wait: the store does not take them", "error", err)
			return false
		}
	}
}

// append appends a batch, and returns how many of it are in the log. When an answer of the store was
// lost, its mark tells whether the batch is there.
func (w *Writer) append(ctx context.Context, batch []storage.AuditEntry) (n int, err error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	for range contended {
		if w.edge == nil {
			head, err := w.o.Store.AuditHead(ctx, w.id)
			if err != nil {
				return 0, err
			}
			if done := head.Mark - w.mark; done > 0 {
				w.mark = head.Mark
				return int(min(done, int64(len(batch)))), nil
			}
			if w.edge, err = readEdge(ctx, w.o.Store, head.Size); err != nil {
				return 0, err
			}
		}
		err = w.try(ctx, batch)
		if err == nil {
			return len(batch), nil
		}
		w.edge = nil
		if !errors.Is(err, storage.ErrChanged) && !errors.Is(err, storage.ErrExists) {
			return 0, err
		}
	}
	return 0, err
}

// try appends a batch at the edge that is known (OB-04).
func (w *Writer) try(ctx context.Context, batch []storage.AuditEntry) error {
	entries := make([]storage.AuditEntry, len(batch))
	leaves := make([]tlog.Hash, len(batch))
	for i, e := range batch {
		e.Index = w.edge.size + int64(i)
		entries[i], leaves[i] = e, tlog.RecordHash(e.Leaf)
	}
	grown, tiles, err := w.edge.grow(leaves)
	if err != nil {
		return err
	}
	err = w.o.Store.AppendAudit(ctx, storage.AuditAppend{
		Size: w.edge.size, Writer: w.id, From: w.mark, To: w.mark + int64(len(batch)), Entries: entries, Tiles: tiles,
		Now: w.o.Now(),
	})
	if err != nil {
		return err
	}
	w.edge, w.mark = grown, w.mark+int64(len(batch))
	return nil
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
	now := w.o.Now()
	due := now.Sub(w.told) >= tellEvery
	if due {
		w.told = now
	}
	w.mu.Unlock()
	if due {
		w.o.Log.Warn(what, attrs...)
	}
}
