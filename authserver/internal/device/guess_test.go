package device

import (
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/allowance"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/testkit/installation"
)

// asking is a store of device requests for tests.
type asking struct {
	*Requests
	t   *testing.T
	now time.Time
}

func newAsking(t *testing.T) *asking {
	t.Helper()
	store := installation.Store(t)
	a := &asking{t: t, now: time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)}
	a.Requests = New(Config{
		Store:  store,
		MAC:    func(code string) storage.Hash { return secrets.Hash(code) },
		Limits: allowance.New(nil, func() time.Time { return a.now }, nil),
		Audit:  audit.New(slog.New(slog.DiscardHandler)),
		Now:    func() time.Time { return a.now },
	})
	return a
}

// waits stores a request and returns its code.
func (a *asking) waits() string {
	a.t.Helper()
	code, err := a.put(a.t.Context(), storage.Device{
		Code: secrets.Hash(secrets.Token(codePrefix)), ClientID: "tv", Resource: "https://mcp.example.com/mcp",
		CreatedAt: a.now, ExpiresAt: a.now.Add(TTL), Interval: Interval,
	})
	if err != nil {
		a.t.Fatal(err)
	}
	return code
}

// wantFind looks up a code for a user in a network.
func (a *asking) wantFind(who, network, code string, want error) {
	a.t.Helper()
	_, err := a.Find(a.t.Context(), code, Guesser{UserID: who, Networks: []string{network}})
	if !errors.Is(err, want) {
		a.t.Fatalf("%s in %s: got %v, want %v", who, network, err, want)
	}
}

// guess types n wrong codes with the same first half, and returns how many were looked up.
func (a *asking) guess(who, network, half string, n int) (looked int) {
	a.t.Helper()
	for i := range n {
		code := half + "BB" + string([]byte{alphabet[i/20], alphabet[i%20]})
		_, err := a.Find(a.t.Context(), code, Guesser{UserID: who, Networks: []string{network}})
		switch {
		case errors.Is(err, ErrWrong):
			looked++
		case !errors.Is(err, ErrThrottled):
			a.t.Fatal(err)
		}
	}
	return looked
}

// AS-240: an attacker can begin requests and therefore knows right codes.
func TestRightCodesForgiveNoGuesses(t *testing.T) {
	a := newAsking(t)
	looked := 0
	for range 12 {
		looked += a.guess("mallory", "10.1.2.0/24", "BBBB", 4)
		_, err := a.Find(t.Context(), a.waits(), Guesser{UserID: "mallory", Networks: []string{"10.1.2.0/24"}})
		if err != nil && !errors.Is(err, ErrThrottled) {
			t.Fatal(err)
		}
	}
	if looked != wrongOfPerson {
		t.Errorf("%d guesses were looked up, want %d", looked, wrongOfPerson)
	}
	a.wantFind("mallory", "10.9.9.0/24", a.waits(), ErrThrottled)
	a.wantFind("bob", "10.1.2.0/24", a.waits(), nil)
	a.now = a.now.Add(Window)
	a.wantFind("mallory", "10.1.2.0/24", a.waits(), nil)
}

// AS-240: right codes do not count, however many there are.
func TestRightCodesAreNoGuesses(t *testing.T) {
	a := newAsking(t)
	for range 3 * wrongOfPerson {
		a.wantFind("alice", "10.1.2.0/24", a.waits(), nil)
	}
}

// AS-240: a code that was not looked up because of the limit does not count.
func TestCodesOverTheLimitAreNoGuesses(t *testing.T) {
	a := newAsking(t)
	a.guess("alice", "10.1.2.0/24", "BBBB", wrongOfPerson)
	for range 5 {
		a.wantFind("alice", "10.1.2.0/24", a.waits(), ErrThrottled)
	}
	n, _, err := a.guesses.store.FailureCount(t.Context(), key("person", "alice"), a.now, Window)
	if err != nil || n != wrongOfPerson {
		t.Errorf("%d codes count as wrong ones, %v, want %d", n, err, wrongOfPerson)
	}
}

// AS-240: the shared limits stop an attacker, and no other user.
func TestGuessersStopNoOtherPerson(t *testing.T) {
	halves := func(i int) string { return "BB" + string([]byte{alphabet[i/20], alphabet[i%20]}) }
	networks := func(i int) string { return fmt.Sprint("net", i) }
	same := func(s string) func(int) string { return func(int) string { return s } }
	for _, tt := range []struct {
		name          string
		people, free  int
		network, half func(i int) string
	}{
		{"from one network", 40, wrongOfNetwork, same("10.1.2.0/24"), halves},
		{"of codes that begin alike", 40, wrongOfPrefix, networks, same("BBBB")},
		{"of all codes, from everywhere", 150, wrongInTotal, networks, halves},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := newAsking(t)
			code, looked := a.waits(), 0
			for i := range tt.people {
				looked += a.guess(fmt.Sprint("mallory", i), tt.network(i), tt.half(i), 2*wrongOfPerson)
			}
			if most := tt.free + spared*tt.people; looked > most || looked <= tt.free {
				t.Errorf("%d guesses were looked up, want %d at most", looked, most)
			}
			here, half := tt.network(0), tt.half(0)
			a.wantFind("alice", here, code, nil)
			if got := a.guess("bob", here, half, spared-1); got != spared-1 {
				t.Errorf("%d codes that bob has mistyped were looked up", got)
			}
			a.wantFind("bob", here, code, nil)
			a.guess("bob", here, half, 1)
			a.wantFind("bob", here, half+"ZZZZ", ErrThrottled)
		})
	}
}
