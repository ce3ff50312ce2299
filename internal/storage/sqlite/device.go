package sqlite

import (
	"context"
	"errors"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/portable"
)

// approveDevice decides a request once: one of N callers changes the row.
const approveDevice = `UPDATE devices SET decided_at = ?1, grant_id = ?3
WHERE code_hash = ?2 AND client_id = ?4 AND resource = ?5 AND decided_at IS NULL AND expires_at > ?1`

// pollDevice increases the interval up to ten minutes. Every request has expired by then.
var pollDevice = `UPDATE devices SET polled_at = ?1, early = ` + column.TooEarly("?1") + `,
	interval_ms = CASE WHEN ` + column.TooEarly("?1") + ` THEN min(interval_ms + ?4, 600000) ELSE interval_ms END
WHERE code_hash = ?2 AND client_id = ?3
RETURNING ` + column.DeviceRead + ", early"

// ApproveDevice implements storage.Devices.
func (s *Store) ApproveDevice(ctx context.Context, a storage.Approval) error {
	return s.write(ctx, "ApproveDevice", func(c *conn) error {
		n, err := c.exec(approveDevice, column.Millis(a.Now), a.Code.Hash[:], a.Grant.ID, a.Grant.ClientID,
			a.Grant.Resource)
		if err == nil && n == 0 {
			return portable.Undecidable(portableConn{c}, a.Code.Hash)
		}
		if err != nil {
			return err
		}
		return storeApproval(c, a)
	})
}

// PollDevice implements storage.Devices.
func (s *Store) PollDevice(
	ctx context.Context, code storage.Hash, clientID string, now time.Time,
) (p storage.Poll, err error) {
	err = s.write(ctx, "PollDevice", func(c *conn) error {
		var row column.DeviceRow
		err := c.one(append(row.Dest(), &p.Early), pollDevice, column.Millis(now), code[:], clientID,
			storage.DeviceSlowDown.Milliseconds())
		if errors.Is(err, storage.ErrNotFound) {
			return foreignDevice(c, code)
		}
		if err == nil {
			p.Device, err = row.Device()
		}
		return err
	})
	return p, err
}

func foreignDevice(c *conn, code storage.Hash) error {
	var there int
	if err := c.one([]any{&there}, "SELECT 1 FROM devices WHERE code_hash = ?", code[:]); err != nil {
		return err
	}
	return storage.ErrMismatch
}
