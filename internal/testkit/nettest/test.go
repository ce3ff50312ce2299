package nettest

import "testing"

// For returns an address from Address and fails the test on an error.
func For(tb testing.TB) string {
	tb.Helper()
	address, err := Address()
	if err != nil {
		tb.Fatal(err)
	}
	return address
}
