package main

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/testkit/nettest"
)

// stopper stops the writing server at one of its writes.
type stopper struct {
	output
	at   int
	stop func()
}

func (s *stopper) Write(p []byte) (int, error) {
	if s.at -= bytes.Count(p, []byte("\n")); s.at <= 0 {
		s.stop()
	}
	return s.output.Write(p)
}

// TestStoppedWhileItStarts checks that a server stopped during its start ends normally, at any line
// of its log.
func TestStoppedWhileItStarts(t *testing.T) {
	for line := 1; line <= 8; line++ {
		ctx, cancel := context.WithCancel(t.Context())
		log := &stopper{at: line, stop: cancel}
		code := run(ctx, []string{"serve", "--data", t.TempDir()}, std{
			strings.NewReader(""), log, log,
			[]string{
				"HOME=" + t.TempDir(), "MCP_AUTHD_LISTEN=" + nettest.For(t),
				"MCP_AUTHD_MANAGEMENT_LISTEN=" + nettest.For(t),
			},
		})
		if cancel(); code != exitOK {
			t.Errorf("stopped at line %d it ended with %d:\n%s", line, code, log)
		}
	}
}
