// Package migrations holds the versioned schema of both databases. Package
// internal/storage/migration reads it.
//
// A step is a file NNNN_name.sql. Its number is its version, without gaps. A released step is never
// edited. schema/sqlite.sql is the result of all steps.
package migrations

import "embed"

// Files holds the files of this folder: sqlite/*.sql, postgres/*.sql and schema/sqlite.sql.
//
//go:embed sqlite/*.sql postgres/*.sql schema/sqlite.sql
var Files embed.FS
