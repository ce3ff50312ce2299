package portable

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

const (
	seeReplica = "INSERT INTO replicas (" + column.ReplicaColumns + ") VALUES ($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12,$13)" +
		column.SeenAgain
	recentReplicas = "SELECT " + column.ReplicaColumns + " FROM replicas WHERE seen_at > $1 ORDER BY seen_at DESC, id LIMIT $2"
)

// replicas implements storage.Replicas.
type replicas struct{ db Engine }

// SeeReplica implements storage.Replicas.
func (s replicas) SeeReplica(ctx context.Context, r storage.Replica) error {
	return s.db.Write(ctx, "SeeReplica", func(c Conn) error {
		_, err := c.Exec(seeReplica, column.ReplicaValues(r)...)
		return err
	})
}

// ForgetReplica implements storage.Replicas.
func (s replicas) ForgetReplica(ctx context.Context, id string) error {
	return s.db.Write(ctx, "ForgetReplica", func(c Conn) error {
		_, err := c.Exec("DELETE FROM replicas WHERE id = $1", id)
		return err
	})
}

// Replicas implements storage.Replicas.
func (s replicas) Replicas(ctx context.Context, now time.Time) (seen []storage.Replica, schema int, err error) {
	err = s.db.Read(ctx, "Replicas", func(c Conn) (err error) {
		seen, err = Each(c, column.ReadReplica, recentReplicas, column.Millis(now.Add(-storage.ReplicaFor)),
			storage.MaxReplicas)
		if err != nil {
			return err
		}
		return c.One([]any{&schema}, column.LastStep)
	})
	return seen, schema, err
}
