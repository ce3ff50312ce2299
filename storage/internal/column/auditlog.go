package column

import (
	"fmt"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/storage"
)

// AuditWriterFor is how long the mark of a writer is kept that appends nothing: longer than its entries
// can wait in a file for it to start again.
const AuditWriterFor = 400 * 24 * time.Hour

// AuditColumns are what ReadAuditEntry reads.
const AuditColumns = "idx, at, event, grant_id, person, leaf"

// ReadAuditEntry reads AuditColumns.
func ReadAuditEntry(row interface{ Scan(dest ...any) error }) (e storage.AuditEntry, err error) {
	var at int64
	var grant, person *string
	var leaf string
	if err := row.Scan(&e.Index, &at, &e.Event, &grant, &person, &leaf); err != nil {
		return e, err
	}
	e.At, e.Grant, e.Person, e.Leaf = Time(at), OptText(grant), OptText(person), []byte(leaf)
	return e, nil
}

// ReadAuditTile reads level, number and hashes.
func ReadAuditTile(row interface{ Scan(dest ...any) error }) (t storage.AuditTile, err error) {
	return t, row.Scan(&t.Level, &t.Number, &t.Hashes)
}

// ReadCheckpoint reads size, at and signed.
func ReadCheckpoint(row interface{ Scan(dest ...any) error }) (c storage.AuditCheckpoint, err error) {
	var at int64
	var signed string
	if err := row.Scan(&c.Size, &at, &signed); err != nil {
		return c, err
	}
	c.At, c.Signed = Time(at), []byte(signed)
	return c, nil
}

// AuditSelect is the statement of a query with its values; mark is how the database writes the
// parameter of the nth one.
func AuditSelect(q storage.AuditQuery, mark func(n int) string) (string, []any) {
	where, args := []string{}, []any{}
	add := func(condition string, value any) {
		args = append(args, value)
		where = append(where, condition+" "+mark(len(args)))
	}
	add("idx >=", q.From)
	if q.Below > 0 {
		add("idx <", q.Below)
	}
	for _, text := range [][2]string{{"grant_id =", q.Grant}, {"person =", q.Person}, {"event =", q.Event}} {
		if text[1] != "" {
			add(text[0], text[1])
		}
	}
	if !q.Since.IsZero() {
		add("at >=", Millis(q.Since))
	}
	if !q.Until.IsZero() {
		add("at <", Millis(q.Until))
	}
	order := "ASC"
	if q.Last {
		order = "DESC"
	}
	args = append(args, max(q.Limit, 0))
	return fmt.Sprintf("SELECT %s FROM audit_entries WHERE %s ORDER BY idx %s LIMIT %s", AuditColumns,
		strings.Join(where, " AND "), order, mark(len(args))), args
}
