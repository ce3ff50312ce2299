package sqlite

import (
	"context"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

const (
	putStep = "INSERT INTO attempt_steps (at, kept_until, keys, body) VALUES (?1, ?2, ?3, ?4) RETURNING seq"

	putStepKeys = "INSERT INTO attempt_keys (seq, key) SELECT DISTINCT ?1, value FROM json_each(?2)"

	stepsBetween = "SELECT " + column.StepColumns + " FROM attempt_steps WHERE at >= ?1 AND at < ?2"

	// ?4 is a list.
	withAnyKey = " AND seq IN (SELECT k.seq FROM json_each(?4) v CROSS JOIN attempt_keys k ON k.key = v.value)"

	newestSteps = " ORDER BY at DESC, seq DESC LIMIT ?3"
)

// PutSteps implements storage.Attempts.
func (s *Store) PutSteps(ctx context.Context, steps []storage.AttemptStep) error {
	if len(steps) == 0 {
		return nil
	}
	return s.write(ctx, "PutSteps", func(c *conn) error {
		for _, step := range steps {
			var seq int64
			keys := column.List(step.Keys)
			err := c.one([]any{&seq}, putStep, column.Millis(step.At), column.Millis(step.KeptUntil), keys,
				string(step.Body))
			if err == nil {
				_, err = c.exec(putStepKeys, seq, keys)
			}
			if err != nil {
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
		query, args = query+withAnyKey, append(args, column.List(q.Keys))
	}
	err = s.read(ctx, "Steps", func(c *conn) (err error) {
		out, err = each(c, func(row scanner) (storage.AttemptStep, error) {
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
