package portable

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

const (
	// beginKeyed begins a request once: one of N callers inserts or changes the row. The others
	// wait for it and then find the condition false.
	beginKeyed = `INSERT INTO keyed_requests (key_hash, caller_hash, digest, until, expires_at)
VALUES ($1, $2, $3, $4, $5) ON CONFLICT (key_hash) DO UPDATE SET
	caller_hash = excluded.caller_hash, digest = excluded.digest, until = excluded.until,
	expires_at = excluded.expires_at, sealed = NULL
WHERE keyed_requests.expires_at <= $6`
	keyedOf    = "SELECT count(*) FROM keyed_requests WHERE caller_hash = $1 AND expires_at > $2 AND key_hash <> $3"
	keyed      = "SELECT " + column.KeyedColumns + " FROM keyed_requests WHERE key_hash = $1"
	endKeyed   = "UPDATE keyed_requests SET sealed = $2 WHERE key_hash = $1 AND sealed IS NULL"
	forgetOpen = "DELETE FROM keyed_requests WHERE key_hash = $1 AND sealed IS NULL"
)

// keyedRequests implements storage.KeyedRequests.
type keyedRequests struct{ db Engine }

// BeginKeyed implements storage.KeyedRequests.
func (s keyedRequests) BeginKeyed(
	ctx context.Context, r storage.KeyedRequest, most int, now time.Time,
) (stored storage.KeyedRequest, begun bool, err error) {
	err = s.db.Transact(ctx, "BeginKeyed", func(c Conn) error {
		n, err := c.Exec(beginKeyed, append(column.KeyedValues(r), column.Millis(now))...)
		if begun = n > 0; err != nil {
			return err
		}
		if begun {
			var others int
			if err := c.One([]any{&others}, keyedOf, r.Caller[:], column.Millis(now), r.Key[:]); err != nil {
				return err
			}
			if others >= most {
				return storage.ErrFull
			}
		}
		var row column.KeyedRow
		if err := c.One(row.Dest(), keyed, r.Key[:]); err != nil {
			return err
		}
		stored, err = row.KeyedRequest()
		return err
	})
	return stored, begun && err == nil, err
}

// EndKeyed implements storage.KeyedRequests.
func (s keyedRequests) EndKeyed(ctx context.Context, key storage.Hash, sealed []byte) error {
	return s.db.Transact(ctx, "EndKeyed", func(c Conn) error {
		n, err := c.Exec(endKeyed, key[:], sealed)
		if err != nil || n > 0 {
			return err
		}
		var row column.KeyedRow
		if err := c.One(row.Dest(), keyed, key[:]); err != nil {
			return err
		}
		return storage.ErrSpent
	})
}

// ForgetKeyed implements storage.KeyedRequests.
func (s keyedRequests) ForgetKeyed(ctx context.Context, key storage.Hash) error {
	return s.db.Write(ctx, "ForgetKeyed", func(c Conn) error {
		_, err := c.Exec(forgetOpen, key[:])
		return err
	})
}
