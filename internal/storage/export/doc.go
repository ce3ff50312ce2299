// Package export defines the file that moves an installation from one database to another (DL-02).
//
// The file is gzip-compressed text with a JSON value on each line. The first line is an object that
// describes the source. For each table follows an object with the columns, and an array for each
// row. The last line is an object with the number of rows and the SHA-256 of everything before it.
// With it, a reader detects a truncated or accidentally changed file. Values sealed in the database
// stay sealed here. So the file cannot be used without the secret key, but it contains names of
// users and applications.
//
// The tables are the same in both databases, so rows are copied unchanged. Packages internal/storage/sqlite
// and internal/storage/postgres read and write them.
package export

import (
	"errors"
	"time"
)

// format is the number of this file format. It changes with the format.
const format = 1

const (
	// maxLine is the maximum size of a row in bytes. The longest is a task with its result.
	maxLine = 32 << 20
	// maxHeader is the maximum size of other lines in bytes. The longest table has a few dozen
	// columns.
	maxHeader = 64 << 10
)

var (
	// ErrForm means that a file is not an export, or has a format that this program does not know.
	ErrForm = errors.New("this must be an export of mcp-authd, of this version or an earlier one")
	// ErrBroken means that an export is truncated or was changed.
	ErrBroken = errors.New("the export is not whole: it was cut off, or changed")
	// ErrNewer means that a later version wrote an export.
	ErrNewer = errors.New("the export was written by a newer version of mcp-authd: install that version")
	// ErrNotEmpty means that the target database already has an installation.
	ErrNotEmpty = errors.New("the database holds an installation")
	// ErrMigration means that all rows of an export were written, but a later migration failed.
	ErrMigration = errors.New("everything was imported, and the migration to this version failed")
	// ErrText means that a text cannot be exported, because PostgreSQL could not store it.
	ErrText = errors.New("not UTF-8, or with a NUL")
)

// Header describes the source of an export.
type Header struct {
	Format      int       `json:"mcp_authd_export"`
	Version     string    `json:"version"` // of the program
	Issuer      string    `json:"issuer"`
	At          time.Time `json:"at"`
	Migration   int       `json:"migration"`   // the last schema step
	Fingerprint []byte    `json:"fingerprint"` // of the database's secret key
}

// Kind is the type of the values of a column.
type Kind string

// The kinds. Booleans are integers, 0 and 1. Any value can be null.
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

// Table describes the rows that follow.
type Table struct {
	Name    string   `json:"table"`
	Columns []Column `json:"columns"`
	Last    int64    `json:"last,omitempty"` // the last number of the Numbered column
}

// Summary is the size of an export.
type Summary struct {
	Tables int `json:"tables"`
	Rows   int `json:"rows"`
}

// end is the last line.
type end struct {
	Rows   int    `json:"rows"`
	SHA256 []byte `json:"sha256"`
}
