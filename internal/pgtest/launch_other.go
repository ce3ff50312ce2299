//go:build !unix

package pgtest

import (
	"errors"
	"testing"
)

func launch(...string) (*Server, error) {
	return nil, errors.New("a PostgreSQL is started on Unix only")
}

type pipes struct{}

func (*pipes) tell(string) error { return errors.ErrUnsupported }

func (*Server) wait() error { return errors.ErrUnsupported }

// Bouncer skips the test.
func (*Server) Bouncer(tb testing.TB) func(string) string {
	tb.Skip("pgtest: a PgBouncer is started on Unix only")
	return nil
}
