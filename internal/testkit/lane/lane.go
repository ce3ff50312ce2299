// Package lane sorts tests into two lanes. "make test" is the first, with -short: what a contributor
// runs before each change. "make test-all" adds the second: the same rules in more combinations.
package lane

import "testing"

// Reason begins the message of a test that the first lane leaves to the second.
const Reason = "make test-all runs it: "

// Long leaves a test to the second lane. What says which part of the rule the first lane tests.
// test/report finds the tests of the second lane by their calls of Long.
func Long(tb testing.TB, what string) {
	tb.Helper()
	if testing.Short() {
		tb.Skip(Reason + what)
	}
}
