package postgres

import (
	"context"
	"database/sql"
	"encoding/binary"
	"time"

	"github.com/mcp-authd/mcp-authd/mcpresource"
	"github.com/mcp-authd/mcp-authd/mcpresource/internal/tasktable"
)

// Tasks returns a store of tasks for all replicas, which lasts as long as the database does. Arguments and
// results are encrypted with keys as by mcpresource.SealTasks; owners and persons are digests.
// now is the time of the replica, by which tasks expire; nil is time.Now. An error says that no key is given, or
// that one is too short.
func (s *Shared) Tasks(now func() time.Time, keys ...[]byte) (mcpresource.TaskStore, error) {
	if now == nil {
		now = time.Now
	}
	return mcpresource.SealTasks(&tasktable.Table{
		DB: s.db, Server: s.server, Now: now, Numbered: true, Hold: hold,
	}, keys...)
}

// hold makes replicas that count the tasks of a person wait for one another: neither would see the task that the
// other adds. Two persons with the same lock number wait needlessly, which does no harm.
func hold(ctx context.Context, tx *sql.Tx, person []byte) error {
	_, err := tx.ExecContext(ctx, "SELECT pg_advisory_xact_lock($1)", int64(binary.BigEndian.Uint64(person)))
	return err
}
