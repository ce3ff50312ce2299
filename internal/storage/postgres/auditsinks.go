package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

const (
	beginSink = "INSERT INTO audit_sinks (name, next_idx, lost, failed, at)" +
		" SELECT $1, coalesce(max(size), 0), 0, '', $2::bigint FROM audit_head ON CONFLICT (name) DO NOTHING"
	sinkNamed = "SELECT " + column.AuditSinkColumns + " FROM audit_sinks WHERE name = $1"
	moveSink  = "UPDATE audit_sinks SET next_idx = $3, lost = $4, failed = $5, at = $6 WHERE name = $1 AND next_idx = $2"
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

// MoveAuditSink implements storage.AuditSinks.
func (s *Store) MoveAuditSink(ctx context.Context, from int64, k storage.AuditSink) error {
	return s.do(ctx, "MoveAuditSink", func(ctx context.Context, q querier) error {
		return changed(storage.ErrChanged)(exec(
			ctx, q, moveSink, k.Name, from, k.Next, k.Lost, k.Failed, column.Millis(k.At)))
	})
}

// AuditSinks implements storage.AuditSinks.
func (s *Store) AuditSinks(ctx context.Context) (out []storage.AuditSink, err error) {
	err = s.do(ctx, "AuditSinks", func(ctx context.Context, q querier) (err error) {
		out, err = each(ctx, q, func(row pgx.CollectableRow) (storage.AuditSink, error) {
			return column.ReadAuditSink(row)
		}, "SELECT "+column.AuditSinkColumns+" FROM audit_sinks ORDER BY name")
		return err
	})
	return out, err
}
