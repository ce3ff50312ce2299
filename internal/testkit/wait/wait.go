// Package wait lets a test wait for an event instead of for time.
//
// Until and Success poll, each bounded by a minute: a bound that only a hang reaches. Advance moves
// the clock of a synctest bubble. They are the only callers of time.Sleep in tests; internal/archtest
// holds that.
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

// The first look comes at once. The pauses between looks grow from first to last, so that a quick
// event costs little time and a slow one little work.
const (
	first = time.Millisecond
	last  = 50 * time.Millisecond
)

// Until returns when is reports true. It fails the test after Bound, and what names the event then:
// "the letter arrives".
func Until(tb testing.TB, what string, is func() bool) {
	tb.Helper()
	if !Poll(Bound, is) {
		failure.Goroutines(tb)
		tb.Fatalf("waited %v in vain until %s", Bound, what)
	}
}

// Success calls do until it returns nil. It fails the test with the last error after Bound.
func Success(tb testing.TB, what string, do func() error) {
	tb.Helper()
	if err := Retry(Bound, do); err != nil {
		failure.Goroutines(tb)
		tb.Fatalf("waited %v in vain until %s: %v", Bound, what, err)
	}
}

// Poll reports whether is reports true within the bound. It is for code without a test.
func Poll(bound time.Duration, is func() bool) bool {
	return Retry(bound, func() error {
		if is() {
			return nil
		}
		return context.DeadlineExceeded
	}) == nil
}

// Retry calls do until it returns nil, at most for the bound, and returns its last error.
func Retry(bound time.Duration, do func() error) error {
	end := time.Now().Add(bound)
	for pause := first; ; pause = min(2*pause, last) {
		if err := do(); err == nil || time.Now().After(end) {
			return err
		}
		time.Sleep(pause)
	}
}

// Advance returns when the clock of the caller's synctest bubble has moved on by d, which takes no
// real time. It panics outside a bubble, where d would pass on the real clock.
func Advance(d time.Duration) {
	if now := time.Now(); now.Year() > 2020 { // a bubble's clock starts with the year 2000
		panic(fmt.Sprintf("wait.Advance outside a synctest bubble, at %v", now))
	}
	time.Sleep(d)
}
