package portable

import (
	"context"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

// pauses implements verbs of storage.Pauses.
type pauses struct{ db Engine }

// Pauses implements storage.Pauses.
func (s pauses) Pauses(ctx context.Context, userID string) (out []storage.Pause, err error) {
	err = s.db.Read(ctx, "Pauses", func(c Conn) (err error) {
		out, err = Each(c, column.ReadPause, column.ReadPauses+"user_id = $1 ORDER BY paused_at DESC, id LIMIT $2",
			userID, storage.MaxPauses)
		return err
	})
	return out, err
}

// PauseByID implements storage.Pauses.
func (s pauses) PauseByID(ctx context.Context, id string) (p storage.Pause, err error) {
	err = s.db.Read(ctx, "PauseByID", func(c Conn) error {
		var r column.PauseRow
		err := c.One(r.Dest(), column.ReadPauses+"id = $1", id)
		p = r.Pause()
		return err
	})
	return p, err
}
