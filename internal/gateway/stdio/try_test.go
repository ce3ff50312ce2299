package stdio

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/gateway"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

// TestTry checks Try for programs of every revision.
func TestTry(t *testing.T) {
	for _, c := range []struct {
		name, mode string
		Config
	}{
		{"2025-11-25", "good", Config{}}, {"shared", "good", Config{Shared: true}},
		{"one that ends over server/discover", "strict", Config{}},
	} {
		s := serve(t, c.mode, c.Config)
		if name, err := s.Try(t.Context()); err != nil || name != "test" {
			t.Errorf("%s: got %q, %v", c.name, name, err)
		}
		if err := s.Check(t.Context()); err != nil {
			t.Errorf("%s: it is not ready: %v", c.name, err)
		}
		wait.Until(t, c.name+": nothing of it is left",
			func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.total == 0 })
	}
	if name, err := serve(t, "modern", Config{}).Try(t.Context()); err != nil || name != "test" {
		t.Errorf("2026-07-28: got %q, %v", name, err)
	}
	slow, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := serve(t, "unread", Config{}).Try(slow); !errors.Is(err, gateway.ErrAway) {
		t.Errorf("one that has not answered yet: %v", err)
	}
}

// TestCrashAtStart checks that a program that fails at start is down, that its output is reported,
// and that it is up again when it starts.
func TestCrashAtStart(t *testing.T) {
	s := serve(t, "broken", Config{})
	if _, err := s.Try(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "the program has ended (exit status 1); it has said: it does not start") {
		t.Errorf("got %v", err)
	}
	if s.Check(t.Context()) == nil {
		t.Error("it is called up")
	}
	s.blame(nil)
	s.post(`{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-11-25"}}`)
	wait.Until(t, "it is down when a session shows that", func() bool { return s.Check(t.Context()) != nil })
	s.c.Env = append(s.c.Env, "TEST_PROGRAM=good")
	if _, err := s.Try(t.Context()); err != nil || s.Check(t.Context()) != nil {
		t.Errorf("it starts and is called down: %v, %v", err, s.Check(t.Context()))
	}
}
