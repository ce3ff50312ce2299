package attempt

import (
	"context"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/storage"
)

// News is what came of an attempt: a step, or else a verdict on it.
type News struct {
	Attempt Attempt
	Step    *Step
}

const (
	// lookEvery is how often a watch reads what is new.
	lookEvery = time.Second
	// lateness is how long after its time a step may be stored: it waits for its batch, and the clocks of
	// servers differ. What is stored later is not told.
	lateness = 2 * time.Minute
)

// watch is what is known to one who follows attempts: the steps of the last hour, of very many the newest.
type watch struct {
	reading
	told  map[string]bool // by the references of steps, and of verdicts with their fault
	since time.Time       // what came before is not told
	fresh bool            // nothing was read yet
}

// Watch tells what comes in of the attempts that are wanted, until ctx ends, which is no error, or tell
// fails: each step, and each verdict when it is made. That an attempt only goes on is no news. It begins
// with what came since q.From, of the last hour, or now. Between two looks it waits for tick, or a second.
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

// look reads what is new and tells it.
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
	for _, a := range Join(w.sorted(), now) {
		news := a.news()
		for _, n := range news {
			known[n.key()] = true
		}
		if !a.wanted(q) {
			continue
		}
		for _, n := range news {
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

// forget keeps the steps bounded.
func (w *watch) forget(now time.Time) {
	all := w.sorted()
	for i, s := range all {
		if len(all)-i > maxRead || now.Sub(s.At) > beside {
			delete(w.steps, s.seq)
		}
	}
}

// news is all that can be told of an attempt, in its order.
func (a Attempt) news() (out []News) {
	for i := range a.all {
		out = append(out, News{a, &a.all[i]})
	}
	if !a.Pending {
		out = append(out, News{Attempt: a})
	}
	return out
}

// at is when it came.
func (n News) at() time.Time {
	if n.Step != nil {
		return n.Step.At
	}
	return n.Attempt.EndedAt
}

// key is by what it is known that something was told. The verdict on an attempt may be another one later.
func (n News) key() string {
	if n.Step != nil {
		return n.Step.Reference
	}
	return strings.Join([]string{n.Attempt.Decided, string(n.Attempt.Fault)}, " ")
}

// keys are those that each attempt that is wanted has.
func (q Query) keys() []string {
	return keyed(keyReference, q.Reference, keyPerson, q.Person, keyClient, short(q.Client), keyAddress, q.Address)
}
