// Package tasktable stores tasks in a table of an SQL database. The stores for PostgreSQL and
// SQLite share it.
package tasktable

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// Table is the table of tasks of one MCP server. It is safe for concurrent use. Its columns are
//
//	id         bytes, the primary key: a digest of server, owner and id
//	owner      bytes: a digest of server and owner
//	person     bytes: a digest of server and person
//	name       text: the id
//	created    integer: milliseconds since the epoch
//	expires    integer: the same
//	version    integer
//	state      bytes
type Table struct {
	DB     *sql.DB
	Server [sha256.Size]byte // the server of the tasks
	Now    func() time.Time
	// Numbered selects the form of parameters: $1 if true, else ?1.
	Numbered bool
	// Hold blocks others who start tasks of the same user until tx ends. Nil if the database
	// serializes writers.
	Hold func(ctx context.Context, tx *sql.Tx, person []byte) error

	sweeping sync.Mutex // guards swept
	swept    time.Time
}

const (
	name = "mcpresource_tasks"

	create = `INSERT INTO ` + name + ` (id, owner, person, name, created, expires, version, state)
SELECT $1, $2, $3, $4, $5, $6, 0, $7
WHERE (SELECT count(*) FROM ` + name + ` WHERE person = $3 AND expires > $8) < $9`

	columns = `name, created, expires, version, state`

	get = `SELECT ` + columns + ` FROM ` + name + ` WHERE id = $1 AND expires > $2`

	list = `SELECT ` + columns + ` FROM ` + name + ` WHERE owner = $1 AND expires > $2
ORDER BY created DESC, name DESC LIMIT $3`

	listAfter = `SELECT ` + columns + ` FROM ` + name + ` WHERE owner = $1 AND expires > $2
	AND (created < $4 OR created = $4 AND name < $5)
ORDER BY created DESC, name DESC LIMIT $3`

	change = `UPDATE ` + name + ` SET state = $1, version = version + 1
WHERE id = $2 AND version = $3 AND expires > $4`

	// Any replica may remove expired rows.
	sweep = `DELETE FROM ` + name + ` WHERE id IN (SELECT id FROM ` + name + ` WHERE expires <= $1 LIMIT $2)`
)

const (
	sweepPace  = time.Minute
	sweepBatch = 1000
)

func (t *Table) text(query string) string {
	if t.Numbered {
		return query
	}
	return strings.ReplaceAll(query, "$", "?")
}

// digest returns a key of this server. A task's key includes its owner, so the id alone finds
// nothing.
func (t *Table) digest(parts ...string) []byte {
	h := sha256.New()
	h.Write(t.Server[:])
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return h.Sum(nil)
}

// CreateTask implements mcpresource.TaskStore.
func (t *Table) CreateTask(ctx context.Context, task mcpresource.Task, most int) error {
	t.sweep(ctx)
	person := t.digest("person", task.Person)
	var o *sql.TxOptions
	if t.Hold != nil { // at a higher isolation level, the count would miss tasks that were added during the wait
		o = &sql.TxOptions{Isolation: sql.LevelReadCommitted}
	}
	tx, err := t.DB.BeginTx(ctx, o)
	if err != nil {
		return failed("keeping", err)
	}
	defer func() { _ = tx.Rollback() }() // no effect after a commit; other errors are returned already
	if t.Hold != nil {
		if err := t.Hold(ctx, tx, person); err != nil {
			return failed("keeping", err)
		}
	}
	n, err := affected(tx.ExecContext(ctx, t.text(create),
		t.digest("task", task.Owner, task.ID), t.digest("owner", task.Owner), person, task.ID,
		task.Created.UnixMilli(), task.Expires.UnixMilli(), task.State, t.Now().UnixMilli(), most))
	switch {
	case err != nil:
		return failed("keeping", err)
	case n == 0:
		return mcpresource.ErrTasksFull
	}
	return failed("keeping", tx.Commit())
}

// Task implements mcpresource.TaskStore.
func (t *Table) Task(ctx context.Context, owner, id string) (mcpresource.Task, error) {
	row := t.DB.QueryRowContext(ctx, t.text(get), t.digest("task", owner, id), t.Now().UnixMilli())
	task, err := scan(row.Scan, owner)
	if errors.Is(err, sql.ErrNoRows) {
		return mcpresource.Task{}, mcpresource.ErrNoTask
	}
	return task, failed("looking for", err)
}

// Tasks implements mcpresource.TaskStore.
func (t *Table) Tasks(
	ctx context.Context, owner string, after mcpresource.Task, limit int,
) (out []mcpresource.Task, err error) {
	query, args := list, []any{t.digest("owner", owner), t.Now().UnixMilli(), limit}
	if after.ID != "" {
		query, args = listAfter, append(args, after.Created.UnixMilli(), after.ID)
	}
	rows, err := t.DB.QueryContext(ctx, t.text(query), args...)
	if err != nil {
		return nil, failed("listing", err)
	}
	defer rows.Close()
	for rows.Next() {
		task, err := scan(rows.Scan, owner)
		if err != nil {
			return nil, failed("listing", err)
		}
		out = append(out, task)
	}
	return out, failed("listing", rows.Err())
}

func scan(row func(...any) error, owner string) (task mcpresource.Task, err error) {
	var created, expires int64
	err = row(&task.ID, &created, &expires, &task.Version, &task.State)
	task.Owner, task.Created, task.Expires = owner, time.UnixMilli(created), time.UnixMilli(expires)
	return task, err
}

// ChangeTask implements mcpresource.TaskStore.
func (t *Table) ChangeTask(ctx context.Context, task mcpresource.Task) error {
	n, err := affected(t.DB.ExecContext(ctx, t.text(change),
		task.State, t.digest("task", task.Owner, task.ID), task.Version, t.Now().UnixMilli()))
	if err != nil || n > 0 {
		return failed("changing", err)
	}
	if _, err := t.Task(ctx, task.Owner, task.ID); err != nil {
		return err
	}
	return mcpresource.ErrTaskChanged
}

func affected(result sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// sweep removes expired tasks, once a minute in the request of one caller.
func (t *Table) sweep(ctx context.Context) {
	if !t.sweeping.TryLock() {
		return
	}
	defer t.sweeping.Unlock()
	began := t.Now()
	if began.Sub(t.swept) < sweepPace {
		return
	}
	t.swept = began
	n, err := affected(t.DB.ExecContext(ctx, t.text(sweep), began.UnixMilli(), sweepBatch))
	if err == nil && n == sweepBatch {
		t.swept = time.Time{} // there is more
	}
}

func failed(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("mcpresource: %s a task: %w", doing, err)
}
