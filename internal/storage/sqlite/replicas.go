package sqlite

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

const (
	seeReplica = "INSERT INTO replicas (" + column.ReplicaColumns + ") VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)" +
		column.SeenAgain
	replicas = "SELECT " + column.ReplicaColumns + " FROM replicas WHERE seen_at > ? ORDER BY seen_at DESC, id LIMIT ?"
)

func readReplica(row scanner) (storage.Replica, error) { return column.ReadReplica(row) }

// SeeReplica implements storage.Replicas.
func (s *Store) SeeReplica(ctx context.Context, r storage.Replica) error {
	return s.write(ctx, "SeeReplica", func(c *conn) error {
		_, err := c.exec(seeReplica, column.ReplicaValues(r)...)
		return err
	})
}

// ForgetReplica implements storage.Replicas.
func (s *Store) ForgetReplica(ctx context.Context, id string) error {
	return s.write(ctx, "ForgetReplica", func(c *conn) error {
		_, err := c.exec("DELETE FROM replicas WHERE id = ?", id)
		return err
	})
}

// Replicas implements storage.Replicas.
func (s *Store) Replicas(ctx context.Context, now time.Time) (seen []storage.Replica, schema int, err error) {
	err = s.read(ctx, "Replicas", func(c *conn) (err error) {
		seen, err = each(c, readReplica, replicas, column.Millis(now.Add(-storage.ReplicaFor)), storage.MaxReplicas)
		if err != nil {
			return err
		}
		return c.one([]any{&schema}, column.LastStep)
	})
	return seen, schema, err
}
