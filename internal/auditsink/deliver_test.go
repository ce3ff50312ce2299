package auditsink

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/audit/verify"
	"github.com/mcp-authd/mcp-authd/internal/auditformat"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/testkit/installation"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

// rig is a log in a store.
type rig struct {
	*installation.Installation
	t *testing.T
}

func newRig(t *testing.T) *rig {
	t.Helper()
	return &rig{installation.New(t), t}
}

// append adds n entries to the log.
func (r *rig) append(n int) {
	r.t.Helper()
	e := verify.Entry{At: r.Now(), Event: "login.succeeded", Fields: map[string]string{"user_name": "alice"}}
	r.appendLeaf(e.Leaf(), n)
}

// appendLeaf adds n entries with the same leaf to the log.
func (r *rig) appendLeaf(leaf []byte, n int) {
	r.t.Helper()
	err := r.Store.AppendAudit(r.t.Context(), "", -1, func(end storage.AuditEnd) (storage.AuditAppend, error) {
		a := storage.AuditAppend{Now: r.Now()}
		for i := range int64(n) {
			a.Entries = append(a.Entries, storage.AuditEntry{
				Index: end.Size + i, At: r.Now(), Event: "login.succeeded", Leaf: leaf,
			})
		}
		return a, nil
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

// receiver collects entries, and returns refuses if it is set.
type receiver struct {
	mu      sync.Mutex // guards the following fields
	got     []int64
	refuses error
}

func (k *receiver) Deliver(_ context.Context, batch []auditformat.Entry) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.refuses != nil {
		return k.refuses
	}
	for _, e := range batch {
		k.got = append(k.got, e.Index)
	}
	return nil
}

func (k *receiver) Close() error { return nil }

func (k *receiver) refuse(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.refuses = err
}

func (k *receiver) has() []int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.got)
}

// replica returns a deliverer to a receiver, as one of several servers.
func (r *rig) replica(k Sink) *line {
	r.t.Helper()
	d, err := New(Options{Store: r.Store, Now: r.Now, Log: slog.New(slog.NewTextHandler(r.Log, nil))})
	if err != nil {
		r.t.Fatal(err)
	}
	l := &line{d: d, name: "siem", to: k, wait: firstWait}
	d.lines = append(d.lines, l)
	if err := d.Open(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
	return l
}

func (r *rig) state() State {
	r.t.Helper()
	all, err := States(r.t.Context(), r.Store, []Config{{ID: "siem"}})
	if err != nil || len(all) != 1 {
		r.t.Fatalf("got %v, %v", all, err)
	}
	return all[0]
}

func upTo(from, below int64) (out []int64) {
	for i := from; i < below; i++ {
		out = append(out, i)
	}
	return out
}

func same[T any](t *testing.T, what string, got, want []T, equal func([]T, []T) bool) {
	t.Helper()
	if !equal(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func TestDeliver(t *testing.T) {
	t.Run("OB-06: a new sink has what is recorded from then on, all of it, in order", func(t *testing.T) {
		r, k := newRig(t), &receiver{}
		r.append(3)
		l := r.replica(k)
		r.append(2*batchSize + 1)
		var pauses []time.Duration
		for range 4 {
			pauses = append(pauses, l.step(t.Context()))
		}
		same(t, "entries", k.has(), upTo(3, 3+2*batchSize+1), slices.Equal[[]int64])
		same(t, "pauses", pauses, []time.Duration{0, 0, pollEvery, pollEvery}, slices.Equal[[]time.Duration])
	})
	t.Run("OB-06: while a receiver is away entries wait in the log, and none is lost", func(t *testing.T) {
		r, k := newRig(t), &receiver{}
		l := r.replica(k)
		r.append(1)
		l.step(t.Context())
		k.refuse(errors.New("no route to \xff\x00 host"))
		r.append(2)
		pauses := []time.Duration{l.step(t.Context()), l.step(t.Context()), l.step(t.Context())}
		want := []time.Duration{firstWait, 2 * firstWait, 4 * firstWait}
		same(t, "pauses", pauses, want, slices.Equal[[]time.Duration])
		r.Advance(20 * time.Minute)
		if s := r.state(); s.Waiting != 2 || s.Age(r.Now()) != 20*time.Minute || s.Failed != "no route to \uFFFD host" {
			t.Errorf("got %+v", s)
		}
		if n := strings.Count(r.Log.String(), "does not take entries"); n != 1 {
			t.Errorf("it was logged %d times: %s", n, r.Log)
		}
		k.refuse(nil)
		l.step(t.Context())
		same(t, "entries", k.has(), upTo(0, 3), slices.Equal[[]int64])
		if s := r.state(); s != (State{ID: "siem"}) || !strings.Contains(r.Log.String(), "takes entries again") {
			t.Errorf("got %+v, %s", s, r.Log)
		}
	})
	t.Run("OB-06: one replica delivers, and another goes on when it is gone", func(t *testing.T) {
		r, k := newRig(t), &receiver{}
		one, two := r.replica(k), r.replica(k)
		r.append(2)
		one.step(t.Context())
		if pause := two.step(t.Context()); pause != standBy {
			t.Errorf("the second one waits %s", pause)
		}
		r.append(2)
		r.Advance(held - time.Second)
		two.step(t.Context())
		same(t, "before it is gone", k.has(), upTo(0, 2), slices.Equal[[]int64])
		r.Advance(2 * time.Second)
		two.step(t.Context())
		same(t, "after", k.has(), upTo(0, 4), slices.Equal[[]int64])
		two.leave(t.Context())
		r.append(1)
		one.step(t.Context())
		one.step(t.Context())
		same(t, "what it left", k.has(), upTo(0, 5), slices.Equal[[]int64])
	})
	t.Run("OB-06: what was removed before a sink had it is counted and told", func(t *testing.T) {
		r, k := newRig(t), &receiver{}
		l := r.replica(k)
		r.append(5)
		if _, err := r.Store.RemoveAudit(t.Context(), 3, 10); err != nil {
			t.Fatal(err)
		}
		l.step(t.Context())
		same(t, "entries", k.has(), upTo(3, 5), slices.Equal[[]int64])
		if s := r.state(); s.Lost != 3 || !strings.Contains(r.Log.String(), "entries=3 from=0 below=5") {
			t.Errorf("got %+v, %s", s, r.Log)
		}
	})
	t.Run("OB-06: an entry that cannot be read holds up none that follows", func(t *testing.T) {
		r, k := newRig(t), &receiver{}
		l := r.replica(k)
		r.append(1)
		r.appendLeaf([]byte("{}"), 1)
		r.append(1)
		l.step(t.Context())
		same(t, "entries", k.has(), []int64{0, 2}, slices.Equal[[]int64])
		if s := r.state(); s.Lost != 1 || s.Waiting != 0 {
			t.Errorf("got %+v", s)
		}
	})
	t.Run("OB-06: the end of a server waits for what is in the log", func(t *testing.T) {
		r, k := newRig(t), &receiver{}
		l := r.replica(k)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			l.d.Run(ctx)
		}()
		r.append(1)
		wait.Until(t, "the sink has an entry", func() bool { return len(k.has()) > 0 })
		r.append(1)
		stop()
		<-done
		same(t, "entries", k.has(), upTo(0, 2), slices.Equal[[]int64])
		if ok, err := r.Store.Lease(t.Context(), l.task(), "another", r.Now(), r.Now().Add(held)); !ok || err != nil {
			t.Errorf("another replica cannot go on: %v", err)
		}
	})
}
