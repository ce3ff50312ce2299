package portable

import (
	"context"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

const moveSink = "UPDATE audit_sinks SET next_idx = $3, lost = $4, failed = $5, at = $6 WHERE name = $1 AND next_idx = $2"

// auditSinks implements storage.AuditSinks, except OpenAuditSink.
type auditSinks struct{ db Engine }

// MoveAuditSink implements storage.AuditSinks.
func (s auditSinks) MoveAuditSink(ctx context.Context, from int64, k storage.AuditSink) error {
	return s.db.Write(ctx, "MoveAuditSink", func(c Conn) error {
		return changed(storage.ErrChanged)(c.Exec(
			moveSink, k.Name, from, k.Next, k.Lost, k.Failed, column.Millis(k.At)))
	})
}

// AuditSinks implements storage.AuditSinks.
func (s auditSinks) AuditSinks(ctx context.Context) (out []storage.AuditSink, err error) {
	err = s.db.Read(ctx, "AuditSinks", func(c Conn) (err error) {
		out, err = Each(c, column.ReadAuditSink, "SELECT "+column.AuditSinkColumns+" FROM audit_sinks ORDER BY name")
		return err
	})
	return out, err
}
