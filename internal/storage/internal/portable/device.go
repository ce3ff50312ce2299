package portable

import (
	"context"
	"errors"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

const (
	putDevice = "INSERT INTO devices (" + column.DeviceColumns +
		", early) VALUES ($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12, false)"
	readDevice = "SELECT " + column.DeviceRead +
		" FROM devices WHERE user_code_hash = $1 AND decided_at IS NULL AND expires_at > $2"
	// denyDevice decides a request once: one of N callers changes the row.
	denyDevice = "UPDATE devices SET decided_at = $1 WHERE code_hash = $2 AND decided_at IS NULL AND expires_at > $1"
)

// devices implements verbs of storage.Devices.
type devices struct{ db Engine }

// PutDevice implements storage.Devices.
func (s devices) PutDevice(ctx context.Context, d storage.Device) error {
	return s.db.Write(ctx, "PutDevice", func(c Conn) error {
		_, err := c.Exec(putDevice, column.DeviceValues(d)...)
		return err
	})
}

// DeviceByUserCode implements storage.Devices.
func (s devices) DeviceByUserCode(
	ctx context.Context, userCode storage.Hash, now time.Time,
) (d storage.Device, err error) {
	err = s.db.Read(ctx, "DeviceByUserCode", func(c Conn) error {
		var row column.DeviceRow
		err := c.One(row.Dest(), readDevice, userCode[:], column.Millis(now))
		if err == nil {
			d, err = row.Device()
		}
		return err
	})
	return d, err
}

// DenyDevice implements storage.Devices.
func (s devices) DenyDevice(ctx context.Context, code storage.Hash, now time.Time) error {
	return s.db.Write(ctx, "DenyDevice", func(c Conn) error {
		n, err := c.Exec(denyDevice, column.Millis(now), code[:])
		if err == nil && n == 0 {
			err = Undecidable(c, code)
		}
		return err
	})
}

// Undecidable returns why a request was not decided.
func Undecidable(c Conn, code storage.Hash) error {
	var decided bool
	err := c.One([]any{&decided}, "SELECT decided_at IS NOT NULL FROM devices WHERE code_hash = $1", code[:])
	switch {
	case err != nil && !errors.Is(err, storage.ErrNotFound):
		return err
	case decided:
		return storage.ErrSpent
	}
	return storage.ErrExpired
}
