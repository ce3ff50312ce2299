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
