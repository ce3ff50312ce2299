package postgres

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

const (
	beginSink = "INSERT INTO audit_sinks (name, next_idx, lost, failed, at)" +
		" SELECT $1, coalesce(max(size), 0), 0, '', $2::bigint FROM audit_head ON CONFLICT (name) DO NOTHING"
	sinkNamed = "SELECT " + column.AuditSinkColumns + " FROM audit_sinks WHERE name = $1"
)

// OpenAuditSink implements storage.AuditSinks.
func (s *Store) OpenAuditSink(
	ctx context.Context, name string, now time.Time,
) (sink storage.AuditSink, err error) {
	err = s.do(ctx, "OpenAuditSink", func(ctx context.Context, q querier) (err error) {
		if _, err := exec(ctx, q, beginSink, name, column.Millis(now)); err != nil {
			return err
		}
		sink, err = column.ReadAuditSink(q.QueryRow(ctx, sinkNamed, name))
		return err
	})
	return sink, err
}
