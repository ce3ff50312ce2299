//go:build unix

package pgtest

import "testing"

func TestTheNewestReleaseIsChosen(t *testing.T) {
	if got := release("/usr/lib/postgresql/15/bin/initdb"); got != 15 {
		t.Errorf("got %d, want 15", got)
	}
}
