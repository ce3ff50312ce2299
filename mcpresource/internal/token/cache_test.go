package token

import (
	"fmt"
	"testing"
	"time"
)

func TestTokenCache(t *testing.T) {
	now := time.Now()
	c := newTokenCache(10, func() time.Time { return now })
	for i := range 100 {
		c.put(fmt.Sprint(i), cached{until: now.Add(time.Minute)})
	}
	if c.entries.Len() > 10 {
		t.Errorf("RS-51: %d tokens are kept, want 10 at most", c.entries.Len())
	}
	if _, ok := c.lookup("99"); !ok {
		t.Error("the newest is gone")
	}
	now = now.Add(time.Minute)
	if _, ok := c.lookup("99"); ok {
		t.Error("RS-41: an expired token is found")
	}
}
