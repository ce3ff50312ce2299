package postgres

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Away reports whether an error of Open or of a verb says that no primary can be reached at
// present: it is stopped, starting, full, a standby, or behind a network that does not lead
// there. A caller that waits may find it later, which a wrong password or a missing database denies.
func Away(err error) bool {
	var refused *pgconn.PgError
	if errors.As(err, &refused) {
		return awayState(refused)
	}
	var connect *pgconn.ConnectError
	var network net.Error
	switch {
	case err == nil, untrusted(err):
		return false
	case errors.As(err, &connect), errors.As(err, &network):
		return true
	}
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)
}

// Unauthorized reports whether PostgreSQL answers, and does not let this user in: the password
// is wrong, or the user unknown, or pg_hba.conf has no line for them (class 28 of SQLSTATE).
func Unauthorized(err error) bool { return strings.HasPrefix(state(err), "28") }

// Denied returns what the owner of the database has to run if PostgreSQL lets the user of url in and denies a right,
// and "" for any other error. Since PostgreSQL 15 only the owner of a database may create tables in its
// schema public.
func Denied(url string, err error) (statement string) {
	code := state(err)
	c, parseErr := config(url, Options{})
	if code != insufficientRight && code != noSchema || parseErr != nil {
		return ""
	}
	user := pgx.Identifier{c.ConnConfig.User}.Sanitize()
	var e *pgconn.PgError
	if errors.As(err, &e) && strings.Contains(e.Message, "schema") {
		return "GRANT USAGE, CREATE ON SCHEMA " + schemaOf(c.ConnConfig.RuntimeParams["search_path"]) + " TO " + user
	}
	return "ALTER TABLE ... OWNER TO " + user + ", for each table of its schema"
}

// schemaOf is the schema in which tables are made: the first of the search path, or public.
func schemaOf(searchPath string) string {
	first, _, _ := strings.Cut(searchPath, ",")
	if first = strings.Trim(strings.TrimSpace(first), `"`); first == "" || first == "$user" {
		first = "public"
	}
	return pgx.Identifier{first}.Sanitize()
}

func awayState(e *pgconn.PgError) bool {
	switch {
	case e.Code == "08P01": // PgBouncer's for everything
		return strings.Contains(e.Message, "server login") ||
			strings.Contains(e.Message, "cannot connect to server") ||
			strings.Contains(e.Message, "server conn crashed")
	case strings.HasPrefix(e.Code, "08"), strings.HasPrefix(e.Code, "57P0"):
		return true
	}
	return e.Code == tooManyConnections || e.Code == readOnly
}

// untrusted reports whether it is TLS that failed, which does not mend itself.
func untrusted(err error) bool {
	var verification *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var record tls.RecordHeaderError
	return errors.As(err, &verification) || errors.As(err, &authority) || errors.As(err, &host) ||
		errors.As(err, &record) ||
		err != nil && strings.Contains(err.Error(), "server refused TLS")
}

// Hosts names the servers of a postgres:// URL, without what is secret in it.
func Hosts(url string) string {
	c, err := config(url, Options{})
	if err != nil {
		return "database.url"
	}
	all := []string{address(c.ConnConfig.Host, c.ConnConfig.Port)}
	for _, f := range c.ConnConfig.Fallbacks {
		if a := address(f.Host, f.Port); a != all[len(all)-1] {
			all = append(all, a)
		}
	}
	return strings.Join(all, ", ")
}
