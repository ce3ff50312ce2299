package portable

import (
	"cmp"
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

// ways implements verbs of storage.Ways and storage.RecoveryCodes.
type ways struct{ db Engine }

// Ways implements storage.Ways.
func (s ways) Ways(ctx context.Context, userID string) (out []storage.Way, err error) {
	err = s.db.Read(ctx, "Ways", func(c Conn) (err error) {
		out, err = Each(c, wayOf, "SELECT "+column.WayColumns+
			" FROM ways WHERE user_id = $1 ORDER BY created_at, id", userID)
		return err
	})
	return out, err
}

func wayOf(row Row) (storage.Way, error) {
	var r column.WayRow
	err := row.Scan(r.Dest()...)
	return r.Way(), err
}

// UseWay implements storage.Ways.
func (s ways) UseWay(ctx context.Context, u storage.WayUse) error {
	return s.db.Write(ctx, "UseWay", func(c Conn) error {
		n, err := c.Exec(`UPDATE ways SET counter = $3, data = coalesce($4, data), last_used_at = $5
			WHERE id = $1 AND counter = $2`, u.ID, u.From, u.To, column.Bytes(u.Data), column.Millis(u.Now))
		if err != nil || n > 0 {
			return err
		}
		var there int
		if err := c.One([]any{&there}, "SELECT 1 FROM ways WHERE id = $1", u.ID); err != nil {
			return err
		}
		return storage.ErrChanged
	})
}

// TakeWay implements storage.WayEnds.
func (s ways) TakeWay(ctx context.Context, userID, id string) error {
	return s.db.Write(ctx, "TakeWay", func(c Conn) error {
		return changed(storage.ErrNotFound)(
			c.Exec("DELETE FROM ways WHERE id = $1 AND user_id = $2", id, userID))
	})
}

// SealedWays implements storage.WayCustody.
func (s ways) SealedWays(ctx context.Context, after string, limit int) (out []storage.Way, err error) {
	err = s.db.Read(ctx, "SealedWays", func(c Conn) (err error) {
		out, err = Each(c, wayOf, "SELECT "+column.WayColumns+
			" FROM ways WHERE id > $1 AND kind = 'app' ORDER BY id LIMIT $2", after, max(limit, 0))
		return err
	})
	return out, err
}

// ResealWay implements storage.WayCustody.
func (s ways) ResealWay(ctx context.Context, id string, old, sealed []byte) error {
	return s.db.Write(ctx, "ResealWay", func(c Conn) error {
		return changed(storage.ErrSpent)(
			c.Exec("UPDATE ways SET data = $1 WHERE id = $2 AND kind = 'app' AND data = $3", sealed, id, old))
	})
}

// CheckRecoveryCode implements storage.RecoveryCodes.
func (s ways) CheckRecoveryCode(ctx context.Context, userID string, code storage.Hash) error {
	return s.db.Read(ctx, "CheckRecoveryCode", func(c Conn) error { return checkCode(c, userID, code) })
}

func checkCode(c Conn, userID string, code storage.Hash) error {
	var used bool
	err := c.One([]any{&used}, `SELECT r.used_at IS NOT NULL FROM recovery_codes r JOIN users u ON u.id = r.user_id
		WHERE r.user_id = $1 AND r.hash = $2 AND NOT u.disabled`, userID, code[:])
	if err == nil && used {
		return storage.ErrSpent
	}
	return err
}

// SpendCode uses up a recovery code with its sign-in.
func SpendCode(c Conn, userID string, code storage.Hash, now time.Time) error {
	n, err := c.Exec("UPDATE recovery_codes SET used_at = $3 WHERE user_id = $1 AND hash = $2 AND used_at IS NULL",
		userID, code[:], column.Millis(now))
	if err != nil || n > 0 {
		return err
	}
	return cmp.Or(checkCode(c, userID, code), storage.ErrNotFound)
}
