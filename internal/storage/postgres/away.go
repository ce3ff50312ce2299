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

// Away reports whether an error of Open or of a verb means that no primary can be reached at
// present. It may be stopped, starting, full, a standby, or unreachable. A caller that waits may
// find it later, unlike after a wrong password or with a missing database.
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

// Unauthorized reports whether PostgreSQL responds but rejects this user: the password is wrong,
// the user is unknown, or pg_hba.conf has no line for them (class 28 of SQLSTATE).
func Unauthorized(err error) bool { return strings.HasPrefix(state(err), "28") }

// Denied returns the statement that the database owner must run if PostgreSQL accepts the user of
// url but denies a permission, and "" for any other error. Since PostgreSQL 15, only the owner of a
// database may create tables in its schema public.
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

// schemaOf returns the schema for new tables: the first of the search path, or public.
func schemaOf(searchPath string) string {
	first, _, _ := strings.Cut(searchPath, ",")
	if first = strings.Trim(strings.TrimSpace(first), `"`); first == "" || first == "$user" {
		first = "public"
	}
	return pgx.Identifier{first}.Sanitize()
}

func awayState(e *pgconn.PgError) bool {
	switch {
	case e.Code == "08P01": // PgBouncer's code for every error
		return strings.Contains(e.Message, "server login") ||
			strings.Contains(e.Message, "cannot connect to server") ||
			strings.Contains(e.Message, "server conn crashed")
	case strings.HasPrefix(e.Code, "08"), strings.HasPrefix(e.Code, "57P0"):
		return true
	}
	return e.Code == tooManyConnections || e.Code == readOnly
}

// untrusted reports whether TLS failed, which does not resolve itself.
func untrusted(err error) bool {
	var verification *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var record tls.RecordHeaderError
	return errors.As(err, &verification) || errors.As(err, &authority) || errors.As(err, &host) ||
		errors.As(err, &record) ||
		err != nil && strings.Contains(err.Error(), "server refused TLS")
}

// Hosts returns the servers of a postgres:// URL, without its secrets.
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
