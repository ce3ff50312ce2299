package postgres

import (
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// RU-09: the error for a missing permission contains the statement that grants it.
func TestDenied(t *testing.T) {
	const url = "postgres://app:geheim7@db/authd"
	denied := func(code, message string) error {
		return fmt.Errorf("migrate: %w", &pgconn.PgError{Code: code, Message: message})
	}
	for _, test := range []struct {
		url  string
		err  error
		want string
	}{
		{url, denied("42501", "permission denied for schema public"), `GRANT USAGE, CREATE ON SCHEMA "public" TO "app"`},
		{url, denied("3F000", "no schema has been selected to create in"), `GRANT USAGE, CREATE ON SCHEMA "public" TO "app"`},
		{url + "?search_path=auth,public", denied("42501", "permission denied for schema auth"),
			`GRANT USAGE, CREATE ON SCHEMA "auth" TO "app"`},
		{url, denied("42501", "permission denied for table users"),
			`ALTER TABLE ... OWNER TO "app", for each table of its schema`},
		{url, denied("28P01", "password authentication failed"), ""},
		{url, errors.New("no answer"), ""},
	} {
		if got := Denied(test.url, test.err); got != test.want {
			t.Errorf("RU-09: %v: got %q, want %q", test.err, got, test.want)
		}
	}
}
