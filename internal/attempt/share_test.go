package attempt

import (
	"fmt"
	"testing"
	"time"
)

// TestShares: the limits are shared fairly.
func TestShares(t *testing.T) {
	now := noon
	hosted := Step{
		Kind: Token, Request: Request{Agent: "hosted/1"}, Keys: Keys{Client: "hosted", Address: "160.79.104.1"},
	}
	admitted := func(h *share, n int, step func(i int) Step) (kept int) {
		for i := range n {
			if h.admits(step(i)) {
				kept++
			}
		}
		return kept
	}
	fresh := func() *share { return newShare(func() time.Time { return now }) }
	flood := func(int) Step { return hosted }

	t.Run("OB-01 people who have signed in do not share the network of a hosted client", func(t *testing.T) {
		h := fresh()
		signed := admitted(h, 2000, func(i int) Step {
			return Step{Kind: Consent, Keys: Keys{
				Person: fmt.Sprint("p", i), Code: fmt.Sprint("c", i), Address: fmt.Sprintf("10.%d.%d.1", i/256, i%256),
			}}
		})
		admitted(h, 5000, flood)
		if got := admitted(h, 2000, func(i int) Step {
			s := hosted
			s.Keys.Code, s.Answer.Status = fmt.Sprint("c", i), 400*(i%2)
			return s
		}); signed != 2000 || got != 2000 {
			t.Errorf("got %d consents and %d of 2000 redeemed codes", signed, got)
		}
	})
	t.Run("OB-01 codes that were made up count for the network", func(t *testing.T) {
		if got := admitted(fresh(), 5000, func(i int) Step {
			s := hosted
			s.Keys.Code, s.Keys.Client = fmt.Sprint("made up ", i), fmt.Sprint(i)
			return s
		}); got != perNetwork.Burst {
			t.Errorf("got %d, want %d", got, perNetwork.Burst)
		}
	})
	t.Run("OB-01 one client of a network leaves room for another", func(t *testing.T) {
		h := fresh()
		if got := admitted(h, 5000, flood); got != perAgent.Burst {
			t.Errorf("got %d, want %d", got, perAgent.Burst)
		}
		if got := admitted(h, 100, func(int) Step {
			s := hosted
			s.Keys.Client = "another"
			return s
		}); got != 100 {
			t.Errorf("got %d of another client, want 100", got)
		}
	})
	t.Run("OB-01 one attempt fills nothing but its own", func(t *testing.T) {
		if got := admitted(fresh(), 1000, func(int) Step {
			s := hosted
			s.Keys.Thread, s.Keys.Person = "t", "p"
			return s
		}); got != perAttempt.Burst {
			t.Errorf("got %d, want %d", got, perAttempt.Burst)
		}
	})
	t.Run("OB-01 one person cannot fill it either", func(t *testing.T) {
		if got := admitted(fresh(), 5000, func(i int) Step {
			s := hosted
			s.Keys.Thread, s.Keys.Person = fmt.Sprint(i), "p"
			return s
		}); got != perPerson.Burst {
			t.Errorf("got %d, want %d", got, perPerson.Burst)
		}
	})
	t.Run("OB-01 who names a person and fails does not use their share", func(t *testing.T) {
		h := fresh()
		admitted(h, 5000, func(i int) Step {
			return Step{Kind: SignIn, Answer: Answer{Status: 401}, Keys: Keys{Person: "p", Thread: fmt.Sprint(i)}}
		})
		if !h.admits(Step{Kind: Consent, Keys: Keys{Person: "p", Thread: "own", Address: "192.0.2.1"}}) {
			t.Error("the person's own step is not kept")
		}
	})
}
