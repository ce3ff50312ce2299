package portable

import (
	"context"
	"errors"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

const (
	putPushed = "INSERT INTO pushed_requests (reference_hash, client_id, sealed, expires_at) VALUES ($1,$2,$3,$4)"
	// openPushed gives a request to one browser: one of N concurrent ones changes the row. The
	// others wait for its lock and then find the condition false.
	openPushed = `UPDATE pushed_requests SET browser_hash = $3
WHERE reference_hash = $1 AND client_id = $2 AND expires_at > $4 AND (browser_hash IS NULL OR browser_hash = $3)
RETURNING sealed`
	unopened = "SELECT client_id FROM pushed_requests WHERE reference_hash = $1 AND expires_at > $2"
)

// pushedRequests implements storage.PushedRequests.
type pushedRequests struct{ db Engine }

// PutPushedRequest implements storage.PushedRequests.
func (s pushedRequests) PutPushedRequest(ctx context.Context, r storage.PushedRequest) error {
	return s.db.Write(ctx, "PutPushedRequest", func(c Conn) error {
		_, err := c.Exec(putPushed, r.Reference[:], r.ClientID, r.Sealed, column.Millis(r.ExpiresAt))
		return err
	})
}

// OpenPushedRequest implements storage.PushedRequests.
func (s pushedRequests) OpenPushedRequest(ctx context.Context, o storage.OpenPushed) (sealed []byte, err error) {
	err = s.db.Write(ctx, "OpenPushedRequest", func(c Conn) error {
		now := column.Millis(o.Now)
		err := c.One([]any{&sealed}, openPushed, o.Reference[:], o.ClientID, o.Browser[:], now)
		if !errors.Is(err, storage.ErrNotFound) {
			return err
		}
		var client string
		switch err := c.One([]any{&client}, unopened, o.Reference[:], now); {
		case err != nil:
			return err
		case client != o.ClientID:
			return storage.ErrMismatch
		}
		return storage.ErrSpent
	})
	return sealed, err
}
