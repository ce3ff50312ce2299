package auditsink

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/auditformat"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

const (
	batchSize    = 256
	pollEvery    = time.Second // for entries, by the delivering replica
	standBy      = 5 * time.Second
	deliverTime  = 20 * time.Second
	storeTimeout = 5 * time.Second
	// held is the lease of a replica on a destination, which it renews in time. It is longer than
	// delivering a batch and recording that takes.
	held      = time.Minute
	prolong   = held - deliverTime - 3*storeTimeout
	firstWait = time.Second // after a failure; doubled each time, up to lastWait
	lastWait  = 2 * time.Minute
	tellEvery = 10 * time.Minute
	// finishTime is how long a stopping server waits for the entries in the log.
	finishTime = 3 * time.Second
	maxFailed  = 300
)

// Open makes new destinations start with the entries from now on. Run also does so, but later.
func (d *Deliverer) Open(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	for _, l := range d.lines {
		if _, err := d.o.Store.OpenAuditSink(ctx, l.name, d.o.Now()); err != nil {
			return err
		}
	}
	return nil
}

// Run delivers until ctx ends, and then tries for some seconds to deliver the entries in the log.
// Each destination has its own loop, so none waits for another.
func (d *Deliverer) Run(ctx context.Context) {
	var loops sync.WaitGroup
	for _, l := range d.lines {
		loops.Go(func() { l.run(ctx) })
	}
	loops.Wait()
}

// line is one log destination and its position in the log.
type line struct {
	d    *Deliverer
	name string
	to   Sink

	until time.Time          // end of the lease; zero without a lease
	at    *storage.AuditSink // nil if unknown
	wait  time.Duration      // after the next failure
	told  time.Time          // when a failure was last logged; zero after a success
}

func (l *line) run(ctx context.Context) {
	l.wait = firstWait
	for pause := l.step(ctx); sleep(ctx, pause); {
		pause = l.step(ctx)
	}
	finish, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTime)
	defer cancel()
	for !l.until.IsZero() && l.step(finish) == 0 {
	}
	l.leave(context.WithoutCancel(ctx))
	if err := l.to.Close(); err != nil {
		l.d.o.Log.WarnContext(ctx, "an audit sink does not close", "sink", l.name, "error", err)
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return ctx.Err() == nil
	}
}

// step delivers entries, if any, and returns how long to wait for the next step: 0 if there may be
// more.
func (l *line) step(ctx context.Context) time.Duration {
	if ok, err := l.have(ctx); err != nil {
		return l.failed(ctx, "the store does not say who delivers to an audit sink", err)
	} else if !ok {
		return standBy
	}
	b, err := l.next(ctx)
	if err != nil {
		return l.failed(ctx, "the audit log cannot be read for a sink", err)
	}
	if b.below == l.at.Next {
		return pollEvery
	}
	if len(b.entries) > 0 {
		try, cancel := context.WithTimeout(ctx, deliverTime)
		err = l.to.Deliver(try, b.entries)
		cancel()
	}
	var refused *refusedError
	if errors.As(err, &refused) {
		b.lost, err = b.lost+refused.entries, nil
		l.d.o.Log.ErrorContext(ctx, "an audit sink refuses entries for good", "sink", l.name, "cause", refused)
	}
	if err != nil {
		return l.refused(ctx, err)
	}
	if err := l.move(ctx, b); err != nil {
		l.at = nil
		return l.failed(ctx, "it is not kept how far an audit sink has come: entries will come again", err)
	}
	l.works(ctx)
	if b.whole {
		return pollEvery
	}
	return 0
}

// have reports whether this process may deliver to the destination. Only one replica may.
func (l *line) have(ctx context.Context) (bool, error) {
	now := l.d.o.Now()
	if l.until.Sub(now) > prolong {
		return true, nil
	}
	if !l.until.After(now) {
		l.at = nil // another replica may have delivered since
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	until := now.Add(held)
	ok, err := l.d.o.Store.Lease(ctx, l.task(), l.d.id, now, until)
	l.until = time.Time{}
	if ok {
		l.until = until
	}
	return ok, err
}

func (l *line) task() string { return "audit sink " + l.name }

// leave lets another replica continue at once.
func (l *line) leave(ctx context.Context) {
	if l.until.IsZero() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	now := l.d.o.Now()
	if _, err := l.d.o.Store.Lease(ctx, l.task(), l.d.id, now, now); err != nil {
		l.d.o.Log.WarnContext(ctx, "another replica delivers to an audit sink later", "sink", l.name, "error", err)
	}
	l.until = time.Time{}
}

// batch holds the next entries, up to an index.
type batch struct {
	entries []auditformat.Entry
	below   int64
	lost    int64 // missing or unreadable entries
	whole   bool  // no more entries yet
}

// next reads the next entries of the log.
func (l *line) next(ctx context.Context) (b batch, err error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	o := l.d.o
	if l.at == nil {
		s, err := o.Store.OpenAuditSink(ctx, l.name, o.Now())
		if err != nil {
			return b, err
		}
		l.at = &s
	}
	head, err := o.Store.AuditHead(ctx, "")
	if err != nil {
		return b, err
	}
	from := max(l.at.Next, head.First)
	found, err := o.Store.AuditEntries(ctx, storage.AuditQuery{From: from, Below: head.Size, Limit: batchSize})
	if err != nil {
		return b, err
	}
	b.below = from
	for _, e := range found {
		if read, err := auditformat.Read(e.Index, e.Leaf); err == nil {
			b.entries = append(b.entries, read)
		}
		b.below = e.Index + 1
	}
	if len(found) < batchSize { // entries may also be missing at the end
		b.below, b.whole = max(head.Size, l.at.Next), true
	}
	b.lost = b.below - l.at.Next - int64(len(b.entries))
	return b, nil
}

// move records that the destination has a batch.
func (l *line) move(ctx context.Context, b batch) error {
	to := *l.at
	to.Next, to.Lost, to.Failed = b.below, to.Lost+b.lost, ""
	if b.lost > 0 {
		l.d.o.Log.ErrorContext(ctx, "a sink will never have some entries of the audit log",
			"sink", l.name, "entries", b.lost, "from", l.at.Next, "below", b.below)
	}
	return l.keep(ctx, to)
}

// keep stores the state of the destination, even while the server stops, because delivered entries
// were delivered.
func (l *line) keep(ctx context.Context, to storage.AuditSink) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	to.At = l.d.o.Now()
	if err := l.d.o.Store.MoveAuditSink(ctx, l.at.Next, to); err != nil {
		return err
	}
	l.at = &to
	return nil
}

// refused handles a batch that the receiver did not accept.
func (l *line) refused(ctx context.Context, err error) time.Duration {
	if ctx.Err() != nil {
		return pollEvery // the server stops
	}
	text := strings.ToValidUTF8(strings.ReplaceAll(err.Error(), "\x00", ""), "\uFFFD")
	if len(text) > maxFailed {
		text = strings.ToValidUTF8(text[:maxFailed], "")
	}
	if text != l.at.Failed {
		to := *l.at
		to.Failed = text
		if kept := l.keep(ctx, to); errors.Is(kept, storage.ErrChanged) {
			l.at = nil
		}
	}
	return l.failed(ctx, "an audit sink does not take entries: they wait in the log", err)
}

// failed logs an error at intervals, and returns how long to wait.
func (l *line) failed(ctx context.Context, what string, err error) time.Duration {
	if ctx.Err() != nil {
		return pollEvery
	}
	if now := l.d.o.Now(); l.told.IsZero() || now.Sub(l.told) >= tellEvery {
		l.told = now
		l.d.o.Log.LogAttrs(ctx, slog.LevelWarn, what, slog.String("sink", l.name), slog.String("cause", err.Error()))
	}
	pause := l.wait
	l.wait = min(2*l.wait, lastWait)
	return pause
}

// works notes that a batch was accepted.
func (l *line) works(ctx context.Context) {
	if !l.told.IsZero() {
		l.d.o.Log.InfoContext(ctx, "an audit sink takes entries again", "sink", l.name)
	}
	l.told, l.wait = time.Time{}, firstWait
}
