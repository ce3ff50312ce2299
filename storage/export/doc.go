// Package export is the file in which an installation moves from one database to another (DL-02).
//
// It is text, compressed with gzip, a JSON value on each line: an object that says where it comes
// from; for each table an object with the columns, and an array for each row; and finally an object with the
// number of rows and the SHA-256 of all that stands before it, by which a reader notices a file that ends early
// or was changed by accident. What is sealed in the database is sealed here, too: the file is of
// no use without the secret key, but it names people and applications.
//
// The tables are the same in both databases, so a row is moved as it is. How it is read and written is the
// business of storage/sqlite and storage/postgres.
package export

import (
	"errors"
	"time"
)

// format is the number of this form. A later form has another.
const format = 1

const (
	// maxLine bounds a row, in bytes: the longest is a task with its result.
	maxLine = 32 << 20
	// maxHeader bounds the other lines: the longest table has a few dozen columns.
	maxHeader = 64 << 10
)

var (
	// ErrForm means that a file is not an export, or one in a form that this program does not know.
	ErrForm = errors.New("this is no export of mcp-authd, or one of a later version")
	// ErrBroken means that an export ends early, or is not as it was written.
	ErrBroken = errors.New("the export is not whole: it was cut off, or changed")
	// ErrNewer means that an export comes from a later version.
	ErrNewer = errors.New("the export was written by a newer version of mcp-authd: install that version")
	// ErrNotEmpty means that there is an installation in the database that an export should be read into.
	ErrNotEmpty = errors.New("the database holds an installation")
	// ErrMigration means that all rows of an export were written, and a migration after that failed.
	ErrMigration = errors.New("everything was imported, and the migration to this version failed")
	// ErrText means that a text cannot be moved, as PostgreSQL could not store it.
	ErrText = errors.New("not UTF-8, or with a NUL")
)

// Header says where an export comes from.
type Header struct {
	Format      int       `json:"mcp_authd_export"`
	Version     string    `json:"version"` // of the program
	Issuer      string    `json:"issuer"`
	At          time.Time `json:"at"`
	Migration   int       `json:"migration"`   // the last one of the schema
	Fingerprint []byte    `json:"fingerprint"` // of the secret key that the database belongs to
}

// Kind is the type of the values of a column.
type Kind string

// The kinds. Booleans are integers, 0 and 1. A value of each kind can be null.
const (
	Text    Kind = "text"
	Integer Kind = "integer" // of 64 bits
	Bytes   Kind = "bytes"
)

// Column is a column of a table.
type Column struct {
	Name string `json:"name"`
	Kind Kind   `json:"kind"`
}

// Table says how the rows that follow are to be read.
type Table struct {
	Name    string   `json:"table"`
	Columns []Column `json:"columns"`
	Last    int64    `json:"last,omitempty"` // the last number that Numbered gave out
}

// Summary is how much is in an export.
type Summary struct {
	Tables int `json:"tables"`
	Rows   int `json:"rows"`
}

// end is the last line.
type end struct {
	Rows   int    `json:"rows"`
	SHA256 []byte `json:"sha256"`
}
