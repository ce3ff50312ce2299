package sqlite

import (
	"context"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/portable"
)

const (
	growAudit = `INSERT INTO audit_head (name, size, first_idx) VALUES ('log', ?1, 0)
ON CONFLICT (name) DO UPDATE SET size = size + ?1`
	markAudit = `INSERT INTO audit_writers (id, mark, at) VALUES (?1, ?2, ?3)
ON CONFLICT (id) DO UPDATE SET mark = excluded.mark, at = excluded.at`
	lastTiles = `WITH RECURSIVE levels (level) AS (SELECT 0 UNION ALL SELECT level + 1 FROM levels WHERE level < 6)
SELECT t.level, t.number, t.hashes FROM levels l JOIN audit_tiles t
ON t.level = l.level AND t.number = ?1 >> (8 * (l.level + 1))`
	putEntry    = "INSERT INTO audit_entries (" + column.AuditColumns + ") VALUES (?,?,?,?,?,?)"
	putTile     = "INSERT INTO audit_tiles (level, number, hashes) VALUES (?,?,?) ON CONFLICT (level, number) DO UPDATE SET hashes = excluded.hashes"
	removeAudit = "DELETE FROM audit_entries WHERE idx >= ?1 AND idx < ?2"
	moveAudit   = "UPDATE audit_head SET first_idx = ?2 WHERE name = 'log' AND first_idx = ?1"
)

// entriesAtOnce is how many entries putManyEntries inserts.
const entriesAtOnce = 16

var putManyEntries = putEntry + strings.Repeat(", (?,?,?,?,?,?)", entriesAtOnce-1)

// AppendAudit implements storage.AuditLog.
func (s *Store) AppendAudit(
	ctx context.Context, writer string, known int64, build func(storage.AuditEnd) (storage.AuditAppend, error),
) error {
	return s.write(ctx, "AppendAudit", func(c *conn) (err error) {
		var end storage.AuditEnd
		if end.AuditHead, err = portable.AuditHead(portableConn{c}, writer); err != nil {
			return err
		}
		if end.Size != known {
			if end.Tiles, err = each(c, readAuditTile, lastTiles, end.Size); err != nil {
				return err
			}
		}
		a, err := build(end)
		if err != nil {
			return err
		}
		if _, err := c.exec(growAudit, len(a.Entries)); err != nil {
			return err
		}
		if writer != "" {
			if _, err := c.exec(markAudit, writer, a.Mark, column.Millis(a.Now)); err != nil {
				return err
			}
		}
		if err := putEntries(c, a.Entries); err != nil {
			return err
		}
		for _, t := range a.Tiles {
			if _, err := c.exec(putTile, t.Level, t.Number, t.Hashes); err != nil {
				return err
			}
		}
		return nil
	})
}

// putEntries inserts entries, many with one statement, because the cost is mostly per statement.
func putEntries(c *conn, entries []storage.AuditEntry) error {
	for len(entries) > 0 {
		n, sql := 1, putEntry
		if len(entries) >= entriesAtOnce {
			n, sql = entriesAtOnce, putManyEntries
		}
		args := make([]any, 0, 6*entriesAtOnce)
		for _, e := range entries[:n] {
			args = append(args, e.Index, column.Millis(e.At), e.Event, column.Text(e.Grant), column.Text(e.Person),
				string(e.Leaf))
		}
		if _, err := c.exec(sql, args...); err != nil {
			return err
		}
		entries = entries[n:]
	}
	return nil
}

func readAuditTile(row scanner) (storage.AuditTile, error) { return column.ReadAuditTile(row) }

// RemoveAudit implements storage.AuditLog.
func (s *Store) RemoveAudit(ctx context.Context, below int64, limit int) (first int64, err error) {
	err = s.write(ctx, "RemoveAudit", func(c *conn) error {
		h, err := portable.AuditHead(portableConn{c}, "")
		if err != nil {
			return err
		}
		first = max(h.First, min(below, h.Size, h.First+int64(max(limit, 0))))
		if first == h.First {
			return nil
		}
		if _, err := c.exec(removeAudit, h.First, first); err != nil {
			return err
		}
		return changed(storage.ErrChanged)(c.exec(moveAudit, h.First, first))
	})
	return first, err
}
