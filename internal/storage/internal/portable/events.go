package portable

import (
	"context"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

// events implements a verb of storage.Events.
type events struct{ db Engine }

// PutEvent implements storage.Events.
func (s events) PutEvent(ctx context.Context, e storage.Event) error {
	return s.db.Write(ctx, "PutEvent", func(c Conn) error { return PutEvent(c, e) })
}

// PutEvent stores an event as a part of another verb.
func PutEvent(c Conn, e storage.Event) error {
	_, err := c.Exec("INSERT INTO events (id, at, name, fields) VALUES ($1,$2,$3,$4)", e.ID, column.Millis(e.At),
		e.Name, string(e.Fields))
	return err
}
