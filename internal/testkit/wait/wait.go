// Package wait lets a test wait for an event instead of for time.
//
// Until and Success poll for at most a minute, which only a hang reaches. Advance moves the clock of
// a synctest bubble. Other test code must not call time.Sleep; internal/archtest lists the exceptions.
package wait

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/testkit/failure"
)

// Bound is how long an event may take before it counts as a hang.
const Bound = time.Minute

// Polling starts at once. The pauses between polls grow from first to last, so that a quick event costs
// little time and a slow event costs little work.
const (
	first = time.Millisecond
	last  = 50 * time.Millisecond
)

// Until polls until is returns true. After Bound it fails the test with a message that contains what,
// such as "the letter arrives".
func Until(tb testing.TB, what string, is func() bool) {
	tb.Helper()
	if !Poll(Bound, is) {
		failure.Goroutines(tb)
		tb.Fatalf("waited %v in vain until %s", Bound, what)
	}
}

// Success calls do until it returns nil. After Bound it fails the test with the last error.
func Success(tb testing.TB, what string, do func() error) {
	tb.Helper()
	if err := Retry(Bound, do); err != nil {
		failure.Goroutines(tb)
		tb.Fatalf("waited %v in vain until %s: %v", Bound, what, err)
	}
}

// Poll reports whether is returns true within the bound. It is for code that has no testing.TB.
func Poll(bound time.Duration, is func() bool) bool {
	return Retry(bound, func() error {
		if is() {
			return nil
		}
		return context.DeadlineExceeded
	}) == nil
}

// Retry calls do until it returns nil or the bound has passed. It returns the last error.
func Retry(bound time.Duration, do func() error) error {
	end := time.Now().Add(bound)
	for pause := first; ; pause = min(2*pause, last) {
		if err := do(); err == nil || time.Now().After(end) {
			return err
		}
		time.Sleep(pause)
	}
}

// Advance moves the clock of the caller's synctest bubble by d, which takes no real time. It panics
// outside a bubble, where it would sleep.
func Advance(d time.Duration) {
	if now := time.Now(); now.Year() > 2020 { // a bubble's clock starts with the year 2000
		panic(fmt.Sprintf("wait.Advance outside a synctest bubble, at %v", now))
	}
	time.Sleep(d)
}
