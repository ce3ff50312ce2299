package keys

import (
	"bytes"
	"errors"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/testkit/installation"
)

// TestClaim: a database belongs to the master key that it was created with.
func TestClaim(t *testing.T) {
	store := installation.Store(t)
	one, two := bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32)
	if err := Claim(t.Context(), store, nil); err == nil {
		t.Error("it was claimed with no key")
	}
	for _, c := range []struct {
		name string
		do   func() error
		want error
	}{
		{"of no server", func() error { return Belongs(t.Context(), store, [][]byte{two}) }, nil},
		{"the first claim", func() error { return Claim(t.Context(), store, [][]byte{one, two}) }, nil},
		{"again", func() error { return Claim(t.Context(), store, [][]byte{one}) }, nil},
		{"another key", func() error { return Claim(t.Context(), store, [][]byte{two}) }, ErrOtherKey},
		{"another key, to look", func() error { return Belongs(t.Context(), store, [][]byte{two}) }, ErrOtherKey},
		{"as an older key", func() error { return Claim(t.Context(), store, [][]byte{two, one}) }, nil},
	} {
		if err := c.do(); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
	}
}
