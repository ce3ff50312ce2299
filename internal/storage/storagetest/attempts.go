package storagetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// step returns an attempt's step that is kept for an hour.
func (e *env) step(at time.Time, body string, keys ...string) storage.AttemptStep {
	return storage.AttemptStep{At: at, Keys: keys, Body: []byte(body), KeptUntil: e.now.Add(time.Hour)}
}

// steps returns the bodies of the steps found.
func (e *env) steps(t testing.TB, q storage.StepQuery) (out []string) {
	t.Helper()
	if q.Until.IsZero() {
		q.Until = e.now.Add(24 * time.Hour)
	}
	if q.Limit == 0 {
		q.Limit = 100
	}
	found, err := e.s.Steps(e.ctx, q)
	check(t, err)
	for _, s := range found {
		out = append(out, string(s.Body))
	}
	return out
}

// attempts checks the stored requests on the way to a token (OB-01).
func attempts(t *testing.T, e *env) {
	later := func(d time.Duration) time.Time { return e.now.Add(d) }
	a, b := secrets.ID("thread:"), secrets.ID("grant:")
	t.Run("OB-01 steps are found by each of their keys, the newest first", func(t *testing.T) {
		check(t, e.s.PutSteps(e.ctx, []storage.AttemptStep{
			e.step(e.now, `"first"`, a), e.step(later(time.Second), `"both"`, a, b),
		}))
		check(t, e.s.PutSteps(e.ctx, []storage.AttemptStep{
			e.step(later(time.Second), `"same time"`, b, b), e.step(later(2*time.Second), `"none"`),
		}))
		same(t, e.steps(t, storage.StepQuery{Keys: []string{a}}), []string{`"both"`, `"first"`})
		same(t, e.steps(t, storage.StepQuery{Keys: []string{a, b}}), []string{`"same time"`, `"both"`, `"first"`})
		same(t, e.steps(t, storage.StepQuery{Keys: []string{a, b}, Limit: 2}), []string{`"same time"`, `"both"`})
		same(t, len(e.steps(t, storage.StepQuery{Keys: []string{"unknown"}})), 0)
		found, err := e.s.Steps(e.ctx, storage.StepQuery{Keys: []string{a}, Until: later(time.Hour), Limit: 1})
		check(t, err)
		same(t, found[0].Keys, []string{a, b})
		same(t, found[0].At, later(time.Second))
		same(t, found[0].KeptUntil, later(time.Hour))
		check(t, e.s.PutSteps(e.ctx, nil))
	})
	t.Run("OB-02 and by time: from one, and before another", func(t *testing.T) {
		same(t, e.steps(t, storage.StepQuery{From: later(time.Second), Until: later(2 * time.Second)}),
			[]string{`"same time"`, `"both"`})
		same(t, e.steps(t, storage.StepQuery{Keys: []string{a}, Until: later(time.Second)}), []string{`"first"`})
		same(t, e.steps(t, storage.StepQuery{From: later(2 * time.Second)})[0], `"none"`)
	})
	t.Run("OB-01 a sweep removes what was kept long enough, with its keys", func(t *testing.T) {
		long := e.step(e.now, `"long"`, a)
		long.KeptUntil = later(48 * time.Hour)
		check(t, e.s.PutSteps(e.ctx, []storage.AttemptStep{long}))
		e.sweepAll(t, later(time.Hour-time.Millisecond))
		same(t, len(e.steps(t, storage.StepQuery{Keys: []string{a, b}})), 4)
		e.sweepAll(t, later(time.Hour))
		same(t, e.steps(t, storage.StepQuery{Keys: []string{a, b}}), []string{`"long"`})
	})
	t.Run("OB-01 32 replicas store steps of one attempt", func(t *testing.T) { raceSteps(t, e) })
}

// raceSteps stores steps of one attempt from several replicas. All must be stored.
func raceSteps(t *testing.T, e *env) {
	key := secrets.ID("thread:")
	var c tally
	compete(func(i int) {
		c.add(e.s.PutSteps(e.ctx, []storage.AttemptStep{e.step(e.now, fmt.Sprint(i), key, fmt.Sprint("r:", i))}))
	})
	c.want(t, racers)
	same(t, len(e.steps(t, storage.StepQuery{Keys: []string{key}})), racers)
}
