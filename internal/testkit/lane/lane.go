// Package lane sorts tests into two lanes. "make test" runs the first lane, with -short, before each
// change. "make test-all" adds the second lane, which tests the same rules in more combinations.
package lane

import "testing"

// Reason is the start of the skip message of a test in the second lane.
const Reason = "make test-all runs it: "

// Long puts a test in the second lane: it skips the test with -short. What says how the first lane
// tests the rule. test/report finds these tests by the calls of Long in their bodies.
func Long(tb testing.TB, what string) {
	tb.Helper()
	if testing.Short() {
		tb.Skip(Reason + what)
	}
}
