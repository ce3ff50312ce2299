package attempt

import (
	"context"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// News is an event of an attempt: a step, or a verdict.
type News struct {
	Attempt Attempt
	Step    *Step
}

const (
	// lookEvery is how often a watch reads new steps.
	lookEvery = time.Second
	// lateness is how late a step may be stored, because steps are written in batches and clocks
	// differ. A step stored later is not reported.
	lateness = 2 * time.Minute
)

// watch is the state of one watcher: the steps of the last hour, or the newest if there are too
// many.
type watch struct {
	reading
	told  map[string]bool // reported news, by key
	since time.Time       // earlier news are not reported
	fresh bool            // no read has happened yet
}

// Watch calls tell for each new step of the matching attempts, and for each new verdict. A pending
// verdict is not reported. Watch starts with news since q.From, at most an hour ago, or since now.
// Between reads it waits for tick, or a second. It returns nil when ctx ends, and otherwise an
// error of the store or of tell.
func (f Finder) Watch(ctx context.Context, q Query, tick <-chan time.Time, tell func(News) error) error {
	if tick == nil {
		ticker := time.NewTicker(lookEvery)
		defer ticker.Stop()
		tick = ticker.C
	}
	w := &watch{
		reading: reading{store: f.Store, steps: map[int64]Step{}}, told: map[string]bool{}, since: q.From, fresh: true,
	}
	if w.since.IsZero() {
		w.since = f.Now()
	}
	for {
		err := w.look(ctx, f.Now(), q, tell)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		select {
		case <-tick:
		case <-ctx.Done():
			return nil
		}
	}
}

// look reads new steps and reports them.
func (w *watch) look(ctx context.Context, now time.Time, q Query, tell func(News) error) error {
	from := now.Add(-lateness)
	if w.fresh {
		from = now.Add(-beside)
	}
	if _, err := w.read(ctx, storage.StepQuery{From: from, Until: now.Add(beside)}); err != nil {
		return err
	}
	w.forget(now)
	known := map[string]bool{}
	var wanted []Attempt
	for _, a := range Join(w.sorted(), now) {
		for _, n := range a.news() {
			known[n.key()] = true
		}
		if a.wanted(q) {
			wanted = append(wanted, a)
		}
	}
	wanted, err := q.of(ctx, wanted)
	if err != nil {
		return err
	}
	for _, a := range wanted {
		for _, n := range a.news() {
			if w.told[n.key()] || w.fresh && n.at().Before(w.since) {
				w.told[n.key()] = true
				continue
			}
			if err := tell(n); err != nil {
				return err
			}
			w.told[n.key()] = true
		}
	}
	for key := range w.told {
		if !known[key] {
			delete(w.told, key)
		}
	}
	w.fresh = false
	return nil
}

// forget limits the remembered steps.
func (w *watch) forget(now time.Time) {
	all := w.sorted()
	for i, s := range all {
		if len(all)-i > maxRead || now.Sub(s.At) > beside {
			delete(w.steps, s.seq)
		}
	}
}

// news returns all events of an attempt, in order.
func (a Attempt) news() (out []News) {
	for i := range a.all {
		out = append(out, News{a, &a.all[i]})
	}
	if !a.Pending {
		out = append(out, News{Attempt: a})
	}
	return out
}

// at returns the time of the event.
func (n News) at() time.Time {
	if n.Step != nil {
		return n.Step.At
	}
	return n.Attempt.EndedAt
}

// key identifies reported news. The verdict on an attempt may change later.
func (n News) key() string {
	if n.Step != nil {
		return n.Step.Reference
	}
	return strings.Join([]string{n.Attempt.Decided, string(n.Attempt.Fault)}, " ")
}

// keys returns the keys that every matching attempt has.
func (q Query) keys() []string {
	return keyed(keyReference, q.Reference, keyPerson, q.Person, keyClient, short(q.Client), keyAddress, q.Address)
}
