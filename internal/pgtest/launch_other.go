//go:build !unix

package pgtest

import "errors"

func launch() (*Server, error) {
	return nil, errors.New("a PostgreSQL is started on Unix only")
}
