package postgres

import (
	"context"
	"database/sql"
	"encoding/binary"
	"time"

	"github.com/mcp-authd/mcp-authd/mcpresource"
	"github.com/mcp-authd/mcp-authd/mcpresource/internal/tasktable"
)

// Tasks returns a task store for all replicas that lasts as long as the database. Arguments and
// results are encrypted with keys, see mcpresource.SealTasks; owners and users are digests. Tasks
// expire by now, the clock of the replica; nil means time.Now. It returns an error without a key,
// or if one is too short.
func (s *Shared) Tasks(now func() time.Time, keys ...[]byte) (mcpresource.TaskStore, error) {
	if now == nil {
		now = time.Now
	}
	return mcpresource.SealTasks(&tasktable.Table{
		DB: s.db, Server: s.server, Now: now, Numbered: true, Hold: hold,
	}, keys...)
}

// hold serializes replicas that count the tasks of a user: otherwise neither would see the other's
// new task. Two users with the same lock number wait for each other, which is harmless.
func hold(ctx context.Context, tx *sql.Tx, person []byte) error {
	_, err := tx.ExecContext(ctx, "SELECT pg_advisory_xact_lock($1)", int64(binary.BigEndian.Uint64(person)))
	return err
}
