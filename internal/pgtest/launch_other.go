//go:build !unix

package pgtest

import "errors"

func launch(...string) (*Server, error) {
	return nil, errors.New("a PostgreSQL is started on Unix only")
}

type pipes struct{}

func (*pipes) tell(string) error { return errors.ErrUnsupported }

func (*Server) wait() error { return errors.ErrUnsupported }
