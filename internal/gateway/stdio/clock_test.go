package stdio

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"
)

// TestGate checks that a program that fails at once is delayed by the configured clock, longer each
// time, and that failures of other users do not shorten the delay.
func TestGate(t *testing.T) {
	now := time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)
	s, err := New(Config{Command: []string{os.Args[0]}, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	fails := func(who string) error {
		if err := s.reserve(who); err != nil {
			return err
		}
		s.release(who, false)
		return nil
	}
	for _, wait := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		if err := fails("alice"); err != nil {
			t.Fatalf("got %v", err)
		}
		if err := s.reserve("alice"); !errors.Is(err, held{wait}) {
			t.Errorf("got %v, want held back for %s", err, wait)
		}
		now = now.Add(wait)
	}
	if err := fails("alice"); err != nil {
		t.Fatal(err)
	}
	for i := range maxGates + 10 {
		if err := fails(fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
		if err := s.reserve("alice"); i%1000 == 0 && !errors.As(err, new(held)) {
			t.Fatalf("after %d others have failed: got %v, want held back", i, err)
		}
		now = now.Add(100 * time.Microsecond)
	}
	if n := s.gates.Len(); n > maxGates {
		t.Errorf("%d gates are kept", n)
	}
}
