package column

import (
	"fmt"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// DeviceColumns are the stored columns of a device's request; DeviceRead are the columns that are
// read.
const (
	DeviceColumns = "code_hash, user_code_hash, client_id, resource, scopes, agent, address, created_at, expires_at, interval_ms, " +
		"proved_after, acr"
	DeviceRead = DeviceColumns + ", decided_at, grant_id"
)

// TooEarly returns the condition that a device polls too early, in a statement on its row. now is
// the time.
func TooEarly(now string) string {
	return fmt.Sprintf("coalesce(polled_at + interval_ms > %s + %d, false)", now, storage.DeviceSlack.Milliseconds())
}

// DeviceRow reads DeviceRead.
type DeviceRow struct {
	d                          storage.Device
	code, userCode             []byte
	scopes                     string
	created, expires, interval int64
	proved, decided            *int64
	grant                      *string
}

func (r *DeviceRow) Dest() []any {
	return []any{&r.code, &r.userCode, &r.d.ClientID, &r.d.Resource, &r.scopes, &r.d.Agent, &r.d.Address,
		&r.created, &r.expires, &r.interval, &r.proved, &r.d.ACR, &r.decided, &r.grant}
}

func (r *DeviceRow) Device() (d storage.Device, err error) {
	d = r.d
	if d.Code, err = Hash(r.code); err != nil {
		return d, err
	}
	if d.UserCode, err = Hash(r.userCode); err != nil {
		return d, err
	}
	scopes, err := ParseList[string](r.scopes)
	d.Scopes = oauth.Scopes(scopes)
	d.CreatedAt, d.ExpiresAt, d.DecidedAt = Time(r.created), Time(r.expires), OptTime(r.decided)
	d.ProvedAfter = OptTime(r.proved)
	d.Interval, d.GrantID = time.Duration(r.interval)*time.Millisecond, OptText(r.grant)
	return d, err
}

// DeviceValues returns the values of DeviceColumns.
func DeviceValues(d storage.Device) []any {
	return []any{d.Code[:], d.UserCode[:], d.ClientID, d.Resource, List(d.Scopes), d.Agent, d.Address,
		Millis(d.CreatedAt), Millis(d.ExpiresAt), d.Interval.Milliseconds(), OptMillis(d.ProvedAfter), d.ACR}
}
