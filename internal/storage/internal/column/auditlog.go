package column

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// AuditWriterFor is how long the mark of an inactive writer is kept. It is longer than entries can
// wait in a file until the writer starts again.
const AuditWriterFor = 400 * 24 * time.Hour

// AuditColumns are the columns that ReadAuditEntry reads.
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

// conditions collects the conditions of a statement with their values.
type conditions struct {
	where []string
	args  []any
}

func (c *conditions) value(v any) string {
	c.args = append(c.args, v)
	return "$" + strconv.Itoa(len(c.args))
}

func (c *conditions) add(condition string, v any) {
	c.where = append(c.where, condition+" "+c.value(v))
}

// take returns the conditions as one, and removes them.
func (c *conditions) take() string {
	all := strings.Join(c.where, " AND ")
	if c.where = nil; all == "" {
		return "TRUE"
	}
	return all
}

// AuditSelect returns the statement of a query, with its values.
func AuditSelect(q storage.AuditQuery) (string, []any) {
	var c conditions
	c.add("idx >=", q.From)
	if q.Below > 0 {
		c.add("idx <", q.Below)
	}
	for _, text := range [][2]string{{"grant_id =", q.Grant}, {"event =", q.Event}} {
		if text[1] != "" {
			c.add(text[0], text[1])
		}
	}
	if !q.Since.IsZero() {
		c.add("at >=", Millis(q.Since))
	}
	order := "ASC"
	if q.Last {
		order = "DESC"
	}
	where := c.take()
	limit := c.value(max(q.Limit, 0))
	return fmt.Sprintf("SELECT %s FROM audit_entries WHERE %s ORDER BY idx %s LIMIT %s", AuditColumns, where, order,
		limit), c.args
}

// AuditSearch builds the statements of a search in the audit log. A search walks along one index,
// reads a bounded number of its entries, and keeps the entries that match its other conditions.
type AuditSearch struct {
	q     storage.AuditSearch
	order string
}

// NewAuditSearch returns a search.
func NewAuditSearch(q storage.AuditSearch) AuditSearch {
	if q.Reads <= 0 || q.Reads > storage.AuditReads {
		q.Reads = storage.AuditReads
	}
	q.Limit = min(q.Limit, q.Reads)
	s := AuditSearch{q: q, order: "at DESC, idx DESC"}
	if s.byIndex() {
		s.order = "idx DESC"
	}
	return s
}

func (s AuditSearch) byIndex() bool { return s.q.Grant != "" || s.q.Person != "" }

// walk adds the conditions that the search's index covers, rest the others.
func (s AuditSearch) walk(c *conditions) {
	after := !s.q.After.At.IsZero()
	switch {
	case s.q.Grant != "":
		c.add("grant_id =", s.q.Grant)
	case s.q.Person != "":
		c.add("person =", s.q.Person)
	case s.q.Event != "":
		c.add("event =", s.q.Event)
	}
	if s.byIndex() {
		if after {
			c.add("idx <", s.q.After.Index)
		}
		return
	}
	if !s.q.Since.IsZero() {
		c.add("at >=", Millis(s.q.Since))
	}
	if !s.q.Until.IsZero() {
		c.add("at <", Millis(s.q.Until))
	}
	if after {
		at := Millis(s.q.After.At)
		c.add("at <=", at)
		c.where = append(c.where, fmt.Sprintf("(at < %s OR idx < %s)", c.value(at), c.value(s.q.After.Index)))
	}
}

func (s AuditSearch) rest(c *conditions) {
	if s.q.Grant != "" && s.q.Person != "" {
		c.add("person =", s.q.Person)
	}
	if s.q.Event != "" {
		c.add("event =", s.q.Event)
	}
	if !s.q.Since.IsZero() {
		c.add("at >=", Millis(s.q.Since))
	}
	if !s.q.Until.IsZero() {
		c.add("at <", Millis(s.q.Until))
	}
}

// Find returns the statement for one entry more than the search's limit, with its values.
func (s AuditSearch) Find() (string, []any) {
	var c conditions
	s.walk(&c)
	where := c.take()
	if s.byIndex() {
		walked := fmt.Sprintf("SELECT idx, at, event, person FROM audit_entries WHERE %s ORDER BY idx DESC LIMIT %d",
			where, s.q.Reads)
		s.rest(&c)
		rest := c.take()
		where = fmt.Sprintf("idx IN (SELECT idx FROM (%s) AS walked WHERE %s ORDER BY idx DESC LIMIT %s)", walked, rest,
			c.value(max(s.q.Limit, 0)+1))
	}
	return fmt.Sprintf("SELECT %s FROM audit_entries WHERE %s ORDER BY %s LIMIT %s", AuditColumns, where, s.order,
		c.value(max(s.q.Limit, 0)+1)), c.args
}

// Stopped returns the statement for the place where Find stopped reading, with its values. It
// selects no row at the end of the log.
func (s AuditSearch) Stopped() (string, []any) {
	var c conditions
	s.walk(&c)
	return fmt.Sprintf("SELECT at, idx FROM audit_entries WHERE %s ORDER BY %s LIMIT 1 OFFSET %d", c.take(), s.order,
		s.q.Reads-1), c.args
}

// Page limits the entries that Find found. If known is false, the caller gets the next place from
// Stopped.
func (s AuditSearch) Page(found []storage.AuditEntry) (_ []storage.AuditEntry, next storage.AuditPlace, known bool) {
	if n := max(s.q.Limit, 0); len(found) > n {
		if n == 0 {
			return nil, next, true
		}
		last := found[n-1]
		return found[:n], storage.AuditPlace{At: last.At, Index: last.Index}, true
	}
	return found, next, !s.byIndex()
}

// ReadAuditPlace reads at and idx.
func ReadAuditPlace(row interface{ Scan(dest ...any) error }) (p storage.AuditPlace, err error) {
	var at int64
	err = row.Scan(&at, &p.Index)
	p.At = Time(at)
	return p, err
}
