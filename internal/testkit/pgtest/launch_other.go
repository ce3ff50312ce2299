//go:build !unix

package pgtest

import (
	"errors"
	"testing"
)

func launch(string, ...string) (*Server, error) {
	return nil, errors.New("a PostgreSQL is started on Unix only")
}

// StartForRun returns an error, because it needs Unix.
func StartForRun() (*Server, error) { return nil, errors.New("a PostgreSQL is started on Unix only") }

type (
	pipes struct{}
	home  struct{}
)

func (*pipes) tell(string) error { return errors.ErrUnsupported }

func (*Server) wait() error { return errors.ErrUnsupported }

// Standby skips the test.
func (*Server) Standby(tb testing.TB, _ string) *Server {
	tb.Skip("pgtest: a standby is started on Unix only")
	return nil
}

// Follow returns an error, because it needs Unix.
func (*Server) Follow(*Server, string) error { return errors.ErrUnsupported }

// Pause returns an error, because it needs Unix.
func (*Server) Pause() error { return errors.ErrUnsupported }

// Resume returns an error, because it needs Unix.
func (*Server) Resume() error { return errors.ErrUnsupported }

// Bouncer skips the test.
func (*Server) Bouncer(tb testing.TB) func(string) string {
	tb.Skip("pgtest: a PgBouncer is started on Unix only")
	return nil
}
