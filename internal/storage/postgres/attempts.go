package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

const (
	// putStep stores a step with its keys $3, a JSON list.
	putStep = `WITH step AS (INSERT INTO attempt_steps (at, kept_until, keys, body) VALUES ($1, $2, $3, $4) RETURNING seq)
INSERT INTO attempt_keys (seq, key) SELECT DISTINCT seq, jsonb_array_elements_text($3::jsonb) FROM step`

	stepsBetween = "SELECT " + column.StepColumns + " FROM attempt_steps WHERE at >= $1 AND at < $2"

	withAnyKey = " AND seq IN (SELECT seq FROM attempt_keys WHERE key = ANY ($4))"

	newestSteps = " ORDER BY at DESC, seq DESC LIMIT $3"
)

// PutSteps implements storage.Attempts.
func (s *Store) PutSteps(ctx context.Context, steps []storage.AttemptStep) error {
	if len(steps) == 0 {
		return nil
	}
	return s.tx(ctx, "PutSteps", func(ctx context.Context, q querier) error {
		for _, step := range steps {
			if _, err := exec(ctx, q, putStep, column.Millis(step.At), column.Millis(step.KeptUntil),
				column.List(step.Keys), string(step.Body)); err != nil {
				return err
			}
		}
		return nil
	})
}

// Steps implements storage.Attempts.
func (s *Store) Steps(ctx context.Context, q storage.StepQuery) (out []storage.AttemptStep, err error) {
	query, args := stepsBetween, []any{column.Millis(q.From), column.Millis(q.Until), max(q.Limit, 0)}
	if len(q.Keys) > 0 {
		query, args = query+withAnyKey, append(args, q.Keys)
	}
	err = s.do(ctx, "Steps", func(ctx context.Context, q querier) (err error) {
		out, err = each(ctx, q, func(row pgx.CollectableRow) (storage.AttemptStep, error) {
			var r column.StepRow
			if err := row.Scan(r.Dest()...); err != nil {
				return storage.AttemptStep{}, err
			}
			return r.Step()
		}, query+newestSteps, args...)
		return err
	})
	return out, err
}
