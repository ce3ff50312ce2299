package nettest

import "testing"

// For is Address, for a test.
func For(tb testing.TB) string {
	tb.Helper()
	address, err := Address()
	if err != nil {
		tb.Fatal(err)
	}
	return address
}
