// Package sqlite stores the tasks of an MCP server in a SQLite database, so that they survive a
// restart.
//
//	store, err := sqlite.NewTasks(ctx, db, "https://mcp.example.com/mcp", nil, key)
//	h := gosdk.NewHandler(guard, server, &gosdk.Options{Tasks: &gosdk.Tasks{Store: store, ...}})
//
// The package links no driver: db is your *sql.DB, for example with the driver modernc.org/sqlite.
// If several processes or connections write to the file, set a busy timeout (PRAGMA busy_timeout)
// and use the write-ahead log (PRAGMA journal_mode = WAL). Replicas on several machines share tasks
// with package mcpresource/postgres.
package sqlite

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"fmt"
	"time"

	"github.com/mcp-authd/mcp-authd/mcpresource"
	"github.com/mcp-authd/mcp-authd/mcpresource/internal/tasktable"
)

// Schema creates the table, as NewTasks does.
const Schema = `CREATE TABLE IF NOT EXISTS mcpresource_tasks (
	id BLOB NOT NULL PRIMARY KEY,
	owner BLOB NOT NULL,
	person BLOB NOT NULL,
	name TEXT NOT NULL,
	created INTEGER NOT NULL,
	expires INTEGER NOT NULL,
	version INTEGER NOT NULL,
	state BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS mcpresource_tasks_owner ON mcpresource_tasks (owner, created);
CREATE INDEX IF NOT EXISTS mcpresource_tasks_person ON mcpresource_tasks (person, expires);
CREATE INDEX IF NOT EXISTS mcpresource_tasks_expires ON mcpresource_tasks (expires);
`

// NewTasks returns a task store in db for one MCP server, identified by resource, and creates the
// table if it is missing. Arguments and results are encrypted with keys, see mcpresource.SealTasks;
// owners and users are digests. A nil now means time.Now. The caller must close db.
func NewTasks(
	ctx context.Context, db *sql.DB, resource string, now func() time.Time, keys ...[]byte,
) (mcpresource.TaskStore, error) {
	if _, err := db.ExecContext(ctx, Schema); err != nil {
		return nil, fmt.Errorf("mcpresource/sqlite: creating the table, see Schema: %w", err)
	}
	if now == nil {
		now = time.Now
	}
	return mcpresource.SealTasks(&tasktable.Table{DB: db, Server: sha256.Sum256([]byte(resource)), Now: now}, keys...)
}
