package sqlite

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

const (
	beginSink = "INSERT INTO audit_sinks (name, next_idx, lost, failed, at)" +
		" SELECT ?1, coalesce(max(size), 0), 0, '', ?2 FROM audit_head WHERE true ON CONFLICT (name) DO NOTHING"
	sinkNamed = "SELECT " + column.AuditSinkColumns + " FROM audit_sinks WHERE name = ?"
	moveSink  = "UPDATE audit_sinks SET next_idx = ?3, lost = ?4, failed = ?5, at = ?6 WHERE name = ?1 AND next_idx = ?2"
)

// OpenAuditSink implements storage.AuditSinks.
func (s *Store) OpenAuditSink(
	ctx context.Context, name string, now time.Time,
) (sink storage.AuditSink, err error) {
	err = s.write(ctx, "OpenAuditSink", func(c *conn) error {
		if _, err := c.exec(beginSink, name, column.Millis(now)); err != nil {
			return err
		}
		found, err := each(c, auditSink, sinkNamed, name)
		if err == nil {
			sink = found[0]
		}
		return err
	})
	return sink, err
}

func auditSink(row scanner) (storage.AuditSink, error) { return column.ReadAuditSink(row) }

// MoveAuditSink implements storage.AuditSinks.
func (s *Store) MoveAuditSink(ctx context.Context, from int64, k storage.AuditSink) error {
	return s.write(ctx, "MoveAuditSink", func(c *conn) error {
		return changed(storage.ErrChanged)(
			c.exec(moveSink, k.Name, from, k.Next, k.Lost, k.Failed, column.Millis(k.At)))
	})
}

// AuditSinks implements storage.AuditSinks.
func (s *Store) AuditSinks(ctx context.Context) (out []storage.AuditSink, err error) {
	err = s.read(ctx, "AuditSinks", func(c *conn) (err error) {
		out, err = each(c, auditSink, "SELECT "+column.AuditSinkColumns+" FROM audit_sinks ORDER BY name")
		return err
	})
	return out, err
}
