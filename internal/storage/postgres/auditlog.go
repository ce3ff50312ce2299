package postgres

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/portable"
)

const (
	// lockAudit lets writers queue. A disconnected writer gives up its place after some seconds.
	lockAudit = `SELECT size, first_idx, set_config('idle_in_transaction_session_timeout', '10s', true)
FROM audit_head WHERE name = 'log' FOR UPDATE`
	// readMark is read after the lock: an append of the writer whose reply was lost may precede it.
	readMark  = "SELECT coalesce(max(mark), 0) FROM audit_writers WHERE id = $1"
	lastTiles = `SELECT t.level, t.number, t.hashes FROM audit_head h CROSS JOIN generate_series(0, 6) AS l (level)
JOIN audit_tiles t ON t.level = l.level AND t.number = h.size >> (8 * (l.level + 1))
WHERE h.name = 'log' AND h.size <> $1`
	beginAudit = "INSERT INTO audit_head (name, size, first_idx) VALUES ('log', 0, 0) ON CONFLICT (name) DO NOTHING"
	growAudit  = "UPDATE audit_head SET size = size + $1 WHERE name = 'log'"
	markAudit  = `INSERT INTO audit_writers (id, mark, at) VALUES ($1, $2, $3)
ON CONFLICT (id) DO UPDATE SET mark = excluded.mark, at = excluded.at`
	putEntries = `INSERT INTO audit_entries (` + column.AuditColumns + `)
SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::text[],
	string_to_array($6::text, chr(10)))`
	putTiles = `INSERT INTO audit_tiles (level, number, hashes)
SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bytea[])
ON CONFLICT (level, number) DO UPDATE SET hashes = excluded.hashes`
	removeAudit = "DELETE FROM audit_entries WHERE idx >= $1 AND idx < $2"
	moveAudit   = "UPDATE audit_head SET first_idx = $2 WHERE name = 'log' AND first_idx = $1"
)

// AppendAudit implements storage.AuditLog. It locks the head row while other writers wait, so it
// sends as much as possible at once.
func (s *Store) AppendAudit(
	ctx context.Context, writer string, known int64, build func(storage.AuditEnd) (storage.AuditAppend, error),
) error {
	return s.txCommitted(ctx, "AppendAudit", func(ctx context.Context, q querier) error {
		end, err := auditEnd(ctx, q, writer, known)
		if errors.Is(err, pgx.ErrNoRows) {
			if _, err = exec(ctx, q, beginAudit); err == nil {
				end, err = auditEnd(ctx, q, writer, known)
			}
		}
		if err != nil {
			return err
		}
		a, err := build(end)
		if err != nil {
			return err
		}
		var b pgx.Batch
		b.Queue(growAudit, len(a.Entries))
		if writer != "" {
			b.Queue(markAudit, writer, a.Mark, column.Millis(a.Now))
		}
		b.Queue(putEntries, entryArrays(a.Entries)...)
		b.Queue(putTiles, tileArrays(a.Tiles)...)
		return q.SendBatch(ctx, &b).Close()
	})
}

// auditEnd locks the end of the log and reads it. It returns pgx.ErrNoRows before the first entry.
func auditEnd(ctx context.Context, q querier, writer string, known int64) (end storage.AuditEnd, err error) {
	var b pgx.Batch
	b.Queue(lockAudit).QueryRow(func(row pgx.Row) error { return row.Scan(&end.Size, &end.First, nil) })
	b.Queue(readMark, writer).QueryRow(func(row pgx.Row) error { return row.Scan(&end.Mark) })
	b.Queue(lastTiles, known).Query(func(rows pgx.Rows) (err error) {
		end.Tiles, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (storage.AuditTile, error) {
			return column.ReadAuditTile(row)
		})
		return err
	})
	return end, q.SendBatch(ctx, &b).Close()
}

// entryArrays returns the columns of entries. Leaves contain no line ends (RFC 8785) and are sent
// as lines of one text, because an array would be copied more often.
func entryArrays(entries []storage.AuditEntry) []any {
	n := len(entries)
	index, at, event := make([]int64, n), make([]int64, n), make([]string, n)
	grant, person := make([]*string, n), make([]*string, n)
	size := n
	for _, e := range entries {
		size += len(e.Leaf)
	}
	var leaves strings.Builder
	leaves.Grow(size)
	for i, e := range entries {
		index[i], at[i], event[i] = e.Index, column.Millis(e.At), e.Event
		grant[i], person[i] = column.Text(e.Grant), column.Text(e.Person)
		if i > 0 {
			leaves.WriteByte('\n')
		}
		leaves.Write(e.Leaf)
	}
	return []any{index, at, event, grant, person, leaves.String()}
}

func tileArrays(tiles []storage.AuditTile) []any {
	n := len(tiles)
	level, number, hashes := make([]int64, n), make([]int64, n), make([][]byte, n)
	for i, t := range tiles {
		level[i], number[i], hashes[i] = int64(t.Level), t.Number, t.Hashes
	}
	return []any{level, number, hashes}
}

// RemoveAudit implements storage.AuditLog.
func (s *Store) RemoveAudit(ctx context.Context, below int64, limit int) (first int64, err error) {
	err = s.txCommitted(ctx, "RemoveAudit", func(ctx context.Context, q querier) error {
		h, err := portable.AuditHead(portableConn{ctx, q}, "")
		if err != nil {
			return err
		}
		first = max(h.First, min(below, h.Size, h.First+int64(max(limit, 0))))
		if first == h.First {
			return nil
		}
		if err := changed(storage.ErrChanged)(exec(ctx, q, moveAudit, h.First, first)); err != nil {
			return err
		}
		_, err = exec(ctx, q, removeAudit, h.First, first)
		return err
	})
	return first, err
}
