package sqlite

import (
	"context"
	"errors"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

const (
	putPushed = "INSERT INTO pushed_requests (reference_hash, client_id, sealed, expires_at) VALUES (?1,?2,?3,?4)"

	// openPushed gives a request to one browser: one of N concurrent ones changes the row.
	openPushed = `UPDATE pushed_requests SET browser_hash = ?3
WHERE reference_hash = ?1 AND client_id = ?2 AND expires_at > ?4 AND (browser_hash IS NULL OR browser_hash = ?3)
RETURNING sealed`
	unopened = "SELECT client_id FROM pushed_requests WHERE reference_hash = ?1 AND expires_at > ?2"
)

// PutPushedRequest implements storage.PushedRequests.
func (s *Store) PutPushedRequest(ctx context.Context, r storage.PushedRequest) error {
	return s.write(ctx, "PutPushedRequest", func(c *conn) error {
		_, err := c.exec(putPushed, r.Reference[:], r.ClientID, r.Sealed, column.Millis(r.ExpiresAt))
		return err
	})
}

// OpenPushedRequest implements storage.PushedRequests.
func (s *Store) OpenPushedRequest(ctx context.Context, o storage.OpenPushed) (sealed []byte, err error) {
	err = s.write(ctx, "OpenPushedRequest", func(c *conn) error {
		now := column.Millis(o.Now)
		err := c.one([]any{&sealed}, openPushed, o.Reference[:], o.ClientID, o.Browser[:], now)
		if !errors.Is(err, storage.ErrNotFound) {
			return err
		}
		var client string
		switch err := c.one([]any{&client}, unopened, o.Reference[:], now); {
		case err != nil:
			return err
		case client != o.ClientID:
			return storage.ErrMismatch
		}
		return storage.ErrSpent
	})
	return sealed, err
}
