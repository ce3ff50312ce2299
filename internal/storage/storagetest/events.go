package storagetest

import (
	"crypto/rand"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// wantRevoked checks that a refused refresh returns the cause and time of its grant's end.
func (e *env) wantRevoked(t testing.TB, a storage.Approval, token storage.PresentedRefresh, by storage.RevokedBy) {
	t.Helper()
	got, err := e.s.RotateRefresh(e.ctx, e.rotation(a, token))
	wantErr(t, err, storage.ErrRevoked)
	if g := got.Grant; g.ID != a.Grant.ID || g.RevokedBy != by || !g.RevokedAt.Equal(e.now) {
		t.Errorf("got grant %q revoked by %q at %s, want %q by %q at %s", g.ID, g.RevokedBy, g.RevokedAt, a.Grant.ID,
			by, e.now)
	}
}

// revokers checks the recorded cause of a grant's end, where cutOffs does not.
func revokers(t *testing.T, e *env) {
	t.Run("reuse, said at once and later", func(t *testing.T) {
		a, first := e.granted(t)
		r := e.rotation(a, first)
		r.Grace = 0
		e.rotate(t, r)
		reuse := e.rotation(a, first)
		reuse.Grace = 0
		got, err := e.s.RotateRefresh(e.ctx, reuse)
		wantErr(t, err, storage.ErrSpent)
		same(t, got.Grant.RevokedBy, storage.ByReuse)
		e.wantRevoked(t, a, first, storage.ByReuse)
	})
	t.Run("the client (RFC 7009)", func(t *testing.T) {
		a, first := e.granted(t)
		_, err := e.s.RevokeRefresh(e.ctx, first, a.Grant.ClientID, e.now)
		check(t, err)
		e.wantRevoked(t, a, first, storage.ByClient)
	})
	t.Run("the first of several", func(t *testing.T) {
		a, first := e.granted(t)
		check(t, e.s.RevokeGrant(e.ctx, a.Grant.ID, storage.ByOperator, e.now))
		check(t, e.s.SetUserDisabled(e.ctx, a.Grant.UserID, true, e.now.Add(time.Hour)))
		e.wantRevoked(t, a, first, storage.ByOperator)
	})
}

func (e *env) event(id string, at time.Time) storage.Event {
	return storage.Event{ID: id, At: at, Name: "user.changed", Fields: []byte(`{"user":"usr_1"}`)}
}

func (e *env) take(t testing.TB, limit int) []storage.Event {
	t.Helper()
	out, err := e.s.TakeEvents(e.ctx, limit, e.now)
	check(t, err)
	return out
}

func events(t *testing.T, e *env) {
	if got := e.take(t, 10); len(got) != 0 {
		t.Errorf("took %v of nothing", got)
	}
	first, second, third := e.event("b", e.now.Add(-time.Hour)), e.event("a", e.now), e.event("c", e.now)
	for _, ev := range []storage.Event{second, third, first} {
		check(t, e.s.PutEvent(e.ctx, ev))
	}
	if diff := cmp.Diff([]storage.Event{first, second}, e.take(t, 2)); diff != "" {
		t.Errorf("oldest first, as many as asked for (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]storage.Event{third}, e.take(t, 10)); diff != "" {
		t.Errorf("the rest (-want +got):\n%s", diff)
	}
	if got := e.take(t, 10); len(got) != 0 {
		t.Errorf("took %v a second time", got)
	}
	t.Run("OB-04 what a server has taken and not logged, another one gets", func(t *testing.T) {
		check(t, e.s.LoggedEvents(e.ctx, []string{"a", "c", "unknown"}, e.now))
		later := e.now.Add(storage.EventLease)
		for _, c := range []struct {
			at   time.Time
			want int
		}{{later.Add(-time.Millisecond), 0}, {later, 1}, {later, 0}} {
			got, err := e.s.TakeEvents(e.ctx, 10, c.at)
			check(t, err)
			if len(got) != c.want || c.want == 1 && got[0].ID != first.ID {
				t.Errorf("at %s: got %v, want %d of them, the first", c.at, got, c.want)
			}
		}
	})
	t.Run("they are swept after 30 days, logged or not", func(t *testing.T) {
		check(t, e.s.PutEvent(e.ctx, e.event("never logged", e.now)))
		sweep := func(after time.Duration) int {
			n, err := e.s.Sweep(e.ctx, storage.Retention{Now: e.now.Add(after)}, 100)
			check(t, err)
			return n
		}
		const kept = 30 * 24 * time.Hour
		if n := sweep(kept - time.Millisecond); n != 1 { // the event from an hour ago
			t.Errorf("swept %d events before their time, want 1", n)
		}
		if n := sweep(kept); n != 3 {
			t.Errorf("swept %d events in time, want 3", n)
		}
		if got := e.take(t, 10); len(got) != 0 {
			t.Errorf("took %v, which was swept", got)
		}
	})
}

func facts(t *testing.T, e *env) {
	before, err := e.s.Remember(e.ctx, "issuer", nil)
	check(t, err)
	same(t, string(before), "")
	for _, step := range []struct{ name, value, before string }{
		{"issuer", "https://a.example", ""}, {"probe", "x", ""}, {"issuer", "https://b.example", "https://a.example"},
		{"issuer", "https://b.example", "https://b.example"},
	} {
		read, err := e.s.Remember(e.ctx, step.name, nil)
		check(t, err)
		same(t, string(read), step.before)
		before, err := e.s.Remember(e.ctx, step.name, []byte(step.value))
		check(t, err)
		same(t, string(before), step.before)
	}
	fp, err := e.s.Fingerprint(e.ctx, []byte("of the key"))
	check(t, err)
	_, err = e.s.Remember(e.ctx, "fingerprint", []byte("something else"))
	check(t, err)
	for range 2 {
		check(t, e.s.Writable(e.ctx))
	}
	again, err := e.s.Fingerprint(e.ctx, nil)
	check(t, err)
	same(t, string(again), string(fp))
	small, err := e.s.Size(e.ctx)
	check(t, err)
	_, err = e.s.Remember(e.ctx, "large", random(1<<20))
	check(t, err)
	large, err := e.s.Size(e.ctx)
	check(t, err)
	if large.Used-small.Used < 1<<20 || small.Free < -1 || small.Free == 0 {
		t.Errorf("a megabyte is stored, and the size is %+v, before %+v", large, small)
	}
}

// random returns bytes that no database can compress.
func random(n int) []byte {
	out := make([]byte, n)
	rand.Read(out) // never fails
	return out
}

// raceEvents: each event goes to one of the servers.
func raceEvents(t *testing.T, e *env) {
	const all = 200
	for i := range all {
		check(t, e.s.PutEvent(e.ctx, e.event(fmt.Sprint("evt_", i), e.now)))
	}
	var mu sync.Mutex
	taken := map[string]int{}
	compete(func(int) {
		for {
			got, err := e.s.TakeEvents(e.ctx, 7, e.now)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			for _, ev := range got {
				taken[ev.ID]++
			}
			mu.Unlock()
			if len(got) == 0 {
				return
			}
		}
	})
	for id, n := range taken {
		if n != 1 {
			t.Errorf("%s was taken %d times", id, n)
		}
	}
	if rest := e.take(t, all); len(taken)+len(rest) != all {
		t.Errorf("%d events were taken and %d are left, of %d", len(taken), len(rest), all)
	}
}
