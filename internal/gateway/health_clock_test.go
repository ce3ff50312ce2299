package gateway

import (
	"context"
	"testing"
	"time"
)

// TestHealthByTheClock checks that the time between probes is measured with Config.Now.
func TestHealthByTheClock(t *testing.T) {
	now, asked := time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC), 0
	u, err := New(Config{
		URL: "http://127.0.0.1:1/mcp", Resource: "https://mcp.example.com/mcp", Now: func() time.Time { return now },
	})
	if err != nil {
		t.Fatal(err)
	}
	u.health.probe = func(context.Context) error { asked++; return nil }
	for _, want := range []int{1, 1, 2} {
		if err := u.health.check(t.Context()); err != nil || asked != want {
			t.Errorf("got %v, asked %d times, want %d", err, asked, want)
		}
		now = now.Add(healthFresh/2 + time.Second/2)
	}
}
