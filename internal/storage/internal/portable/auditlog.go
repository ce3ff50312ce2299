package portable

import (
	"context"
	"slices"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

const auditHead = `SELECT coalesce(max(size), 0), coalesce(max(first_idx), 0),
	coalesce((SELECT mark FROM audit_writers WHERE id = $1), 0) FROM audit_head`

// auditLog implements verbs of storage.AuditLog and storage.AuditCheckpoints.
type auditLog struct{ db Engine }

// AuditHead implements storage.AuditLog.
func (s auditLog) AuditHead(ctx context.Context, writer string) (h storage.AuditHead, err error) {
	err = s.db.Read(ctx, "AuditHead", func(c Conn) (err error) {
		h, err = AuditHead(c, writer)
		return err
	})
	return h, err
}

// AuditHead returns the head of the log for another verb.
func AuditHead(c Conn, writer string) (h storage.AuditHead, err error) {
	err = c.One([]any{&h.Size, &h.First, &h.Mark}, auditHead, writer)
	return h, err
}

// AuditEntries implements storage.AuditLog.
func (s auditLog) AuditEntries(ctx context.Context, q storage.AuditQuery) (out []storage.AuditEntry, err error) {
	sql, args := column.AuditSelect(q)
	err = s.db.Read(ctx, "AuditEntries", func(c Conn) (err error) {
		out, err = Each(c, column.ReadAuditEntry, sql, args...)
		return err
	})
	if q.Last {
		slices.Reverse(out)
	}
	return out, err
}

// SearchAudit implements storage.AuditLog.
func (s auditLog) SearchAudit(
	ctx context.Context, q storage.AuditSearch,
) (found []storage.AuditEntry, next storage.AuditPlace, err error) {
	search := column.NewAuditSearch(q)
	err = s.db.Read(ctx, "SearchAudit", func(c Conn) error {
		sql, args := search.Find()
		all, err := Each(c, column.ReadAuditEntry, sql, args...)
		if err != nil {
			return err
		}
		var known bool
		if found, next, known = search.Page(all); known {
			return nil
		}
		sql, args = search.Stopped()
		places, err := Each(c, column.ReadAuditPlace, sql, args...)
		if len(places) > 0 {
			next = places[0]
		}
		return err
	})
	return found, next, err
}

// AuditTiles implements storage.AuditLog.
func (s auditLog) AuditTiles(
	ctx context.Context, level int, from int64, limit int,
) (out []storage.AuditTile, err error) {
	err = s.db.Read(ctx, "AuditTiles", func(c Conn) (err error) {
		out, err = Each(c, column.ReadAuditTile,
			"SELECT level, number, hashes FROM audit_tiles WHERE level = $1 AND number >= $2 ORDER BY number LIMIT $3",
			level, from, max(limit, 0))
		return err
	})
	return out, err
}

// PutCheckpoint implements storage.AuditCheckpoints.
func (s auditLog) PutCheckpoint(ctx context.Context, p storage.AuditCheckpoint) error {
	return s.db.Write(ctx, "PutCheckpoint", func(c Conn) error {
		return changed(storage.ErrExists)(c.Exec(
			"INSERT INTO audit_checkpoints (size, at, signed) VALUES ($1,$2,$3) ON CONFLICT (size) DO NOTHING",
			p.Size, column.Millis(p.At), string(p.Signed)))
	})
}

// Checkpoints implements storage.AuditCheckpoints.
func (s auditLog) Checkpoints(ctx context.Context, after int64, limit int) (out []storage.AuditCheckpoint, err error) {
	err = s.db.Read(ctx, "Checkpoints", func(c Conn) (err error) {
		out, err = Each(c, column.ReadCheckpoint,
			"SELECT size, at, signed FROM audit_checkpoints WHERE size > $1 ORDER BY size LIMIT $2", after, max(limit, 0))
		return err
	})
	return out, err
}

// LastCheckpoint implements storage.AuditCheckpoints.
func (s auditLog) LastCheckpoint(ctx context.Context) (p storage.AuditCheckpoint, err error) {
	err = s.db.Read(ctx, "LastCheckpoint", func(c Conn) error {
		found, err := Each(c, column.ReadCheckpoint,
			"SELECT size, at, signed FROM audit_checkpoints ORDER BY size DESC LIMIT 1")
		switch {
		case err != nil:
			return err
		case len(found) == 0:
			return storage.ErrNotFound
		}
		p = found[0]
		return nil
	})
	return p, err
}
