package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

const (
	seeReplica = "INSERT INTO replicas (" + column.ReplicaColumns + ") VALUES ($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12,$13)" +
		column.SeenAgain
	replicas = "SELECT " + column.ReplicaColumns + " FROM replicas WHERE seen_at > $1 ORDER BY seen_at DESC, id LIMIT $2"
)

func readReplica(row pgx.CollectableRow) (storage.Replica, error) { return column.ReadReplica(row) }

// SeeReplica implements storage.Replicas.
func (s *Store) SeeReplica(ctx context.Context, r storage.Replica) error {
	return s.do(ctx, "SeeReplica", func(ctx context.Context, q querier) error {
		_, err := exec(ctx, q, seeReplica, column.ReplicaValues(r)...)
		return err
	})
}

// ForgetReplica implements storage.Replicas.
func (s *Store) ForgetReplica(ctx context.Context, id string) error {
	return s.do(ctx, "ForgetReplica", func(ctx context.Context, q querier) error {
		_, err := exec(ctx, q, "DELETE FROM replicas WHERE id = $1", id)
		return err
	})
}

// Replicas implements storage.Replicas.
func (s *Store) Replicas(ctx context.Context, now time.Time) (seen []storage.Replica, schema int, err error) {
	err = s.do(ctx, "Replicas", func(ctx context.Context, q querier) (err error) {
		seen, err = each(ctx, q, readReplica, replicas, column.Millis(now.Add(-storage.ReplicaFor)),
			storage.MaxReplicas)
		if err != nil {
			return err
		}
		return one(ctx, q, []any{&schema}, column.LastStep)
	})
	return seen, schema, err
}
