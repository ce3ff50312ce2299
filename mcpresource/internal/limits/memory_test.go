package limits

import (
	"context"
	"fmt"
	"testing"
	"time"
)

func TestSessionTable(t *testing.T) {
	ctx := context.Background()
	known := func(m SessionBinder, id string) bool {
		_, ok, _ := m.Owner(ctx, id)
		return ok
	}
	t.Run("SP-14 who floods it loses their own sessions", func(t *testing.T) {
		m := NewMemorySessions(10)
		m.Claim(ctx, "victim", Binding{Person: "alice"})
		for i := range 1000 {
			m.Claim(ctx, fmt.Sprint("flood", i), Binding{Person: "mallory"})
		}
		if !known(m, "victim") {
			t.Error("another person's session is unbound")
		}
		if !known(m, "flood999") || known(m, "flood0") {
			t.Error("not the least recently used one of the most is gone")
		}
	})
	t.Run("SP-14 of several with as many, the one that rests longest goes", func(t *testing.T) {
		now := time.Now()
		m := NewMemory(3, func() time.Time { now = now.Add(time.Second); return now })
		for _, who := range []string{"a", "b", "c"} {
			m.Claim(ctx, who, Binding{Person: who})
		}
		known(m, "a")
		m.Claim(ctx, "d", Binding{Person: "d"})
		if !known(m, "a") || known(m, "b") || !known(m, "c") || !known(m, "d") {
			t.Error("b was the one to go")
		}
	})
	t.Run("SP-14 a session that was not used for a day is free", func(t *testing.T) {
		now := time.Now()
		m := NewMemory(3, func() time.Time { return now })
		m.Claim(ctx, "s", Binding{Person: "a"})
		now = now.Add(sessionIdle + time.Second)
		m.Claim(ctx, "s", Binding{Person: "b"})
		if o, _, _ := m.Owner(ctx, "s"); o.Person != "b" || m.sessions.Len() != 1 {
			t.Errorf("got %v, %d sessions", o, m.sessions.Len())
		}
	})
}
