package auditlog

import (
	"context"
	"log/slog"
	"time"
)

// counted reports whether it added a routine event to a sum, so that it needs no entry.
func (w *Writer) counted(event string, attrs []slog.Attr) bool {
	now := w.o.Now()
	o := occurrenceOf(now, event, attrs)
	w.mu.Lock()
	defer w.mu.Unlock()
	counted, dropped := w.sums.count(o, now)
	for _, c := range dropped {
		if c.count > 0 {
			w.close(c)
		}
	}
	if counted != nil && !now.Before(w.beginAt) {
		err := w.sums.keep(counted)
		if err != nil {
			w.beginAt = now.Add(lookEvery)
		}
		w.spooled(err)
	}
	return counted != nil
}

// closeSums records the sums with an ended window. While many entries wait, the sums continue
// instead.
func (w *Writer) closeSums(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.waiting) < asideAt {
		c := w.sums.ended(now)
		if c == nil {
			return
		}
		w.close(c)
	}
}

func (w *Writer) close(c *sum) {
	if _, err := w.add(c.entry()); err != nil {
		w.lost += c.count - 1 // add has counted one
		w.missing += c.count - 1
	}
	w.spooled(w.sums.drop(c.number))
}

// endSums records all sums. Those that the store refuses stay in the spool until the next start.
func (w *Writer) endSums(ctx context.Context) {
	for left := true; left; {
		w.mu.Lock()
		counting := w.sums.counting()
		now := counting[:min(len(counting), maxBatch)]
		for _, c := range now {
			w.close(c)
			c.count = 0
		}
		left = len(now) < len(counting)
		w.mu.Unlock()
		if !w.flush(ctx) {
			break
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if counting := w.sums.counting(); len(counting) == 0 {
		w.spooled(w.sums.spool.tidy("", 0, nil))
	} else if w.sums.spool.file == nil {
		w.o.Log.Error("counts of routine events are lost: the store could not take them", "entries", len(counting))
	}
	w.spooled(w.sums.spool.end())
}
