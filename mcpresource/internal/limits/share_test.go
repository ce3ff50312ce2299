package limits

import (
	"fmt"
	"testing"
)

// TestBodiesOfMany checks that a small body fits however many other callers use their full share.
func TestBodiesOfMany(t *testing.T) {
	b := NewBodies(128 << 20)
	for i := range 20 {
		for Take(b, fmt.Sprint("greedy", i), 64<<10) == nil {
		}
	}
	if err := Take(b, "modest", 4<<10); err != nil {
		t.Errorf("got %v, want room", err)
	}
	if b.total > b.most {
		t.Errorf("%d bytes of %d", b.total, b.most)
	}
}
