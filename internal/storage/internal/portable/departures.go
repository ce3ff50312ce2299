package portable

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

// departures implements verbs of storage.Departures and storage.UpstreamEnds.
type departures struct{ db Engine }

// PutDeparture implements storage.Departures.
func (s departures) PutDeparture(ctx context.Context, d storage.Departure) error {
	return s.db.Write(ctx, "PutDeparture", func(c Conn) error {
		return changed(storage.ErrExists)(
			c.Exec("INSERT INTO departures (key, sealed, expires_at) VALUES ($1,$2,$3) ON CONFLICT DO NOTHING",
				d.Key[:], column.Bytes(d.Sealed), column.Millis(d.ExpiresAt)))
	})
}

// SessionEnd implements storage.UpstreamEnds.
func (s departures) SessionEnd(
	ctx context.Context, session storage.Hash, now time.Time,
) (connector, reason string, err error) {
	err = s.db.Read(ctx, "SessionEnd", func(c Conn) error {
		return c.One([]any{&connector, &reason},
			"SELECT connector, reason FROM farewells WHERE hash = $1 AND expires_at > $2",
			session[:], column.Millis(now))
	})
	return connector, reason, err
}
