package storage

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// DevicePlace is the Place of a consent for a device that polls for the response (RFC 8628). It
// differs from the place of every redirect URI.
const DevicePlace = "device"

// DeviceSlack is how much earlier than Interval a device may poll: a request sent on time may
// travel faster than the previous one.
const DeviceSlack = time.Second

// DeviceSlowDown is added to the interval of a device that polls too early (RFC 8628 §3.5).
const DeviceSlowDown = 5 * time.Second

// Devices stores the requests of devices without a browser (RFC 8628).
type Devices interface {
	// PutDevice stores a request. It returns ErrExists if one of its codes is taken.
	PutDevice(ctx context.Context, d Device) error
	// DeviceByUserCode returns the request that waits for a decision under a user code. It returns
	// ErrNotFound for any other code.
	DeviceByUserCode(ctx context.Context, userCode Hash, now time.Time) (Device, error)
	// ApproveDevice is Approve that also decides a device's request. The request must have the
	// device code a.Code.Hash, the client a.Grant.ClientID and the resource a.Grant.Resource. One
	// of N concurrent decisions counts. The device code then is the code of the grant, for
	// RedeemCode. It returns ErrSpent if the request was already decided, and ErrExpired if it is
	// expired or unknown. It also returns the errors of Approve, which leave the request undecided.
	ApproveDevice(ctx context.Context, a Approval) error
	// DenyDevice denies a request. It returns ErrSpent if the request was already decided, and
	// ErrExpired if it is expired or unknown.
	DenyDevice(ctx context.Context, code Hash, now time.Time) error
	// PollDevice records that the client of a request polls for the decision, and returns the
	// request. It returns an expired request for one more hour. A poll is Early if it comes sooner
	// after the last one than Interval less DeviceSlack. An early poll adds DeviceSlowDown to the
	// Interval. It returns ErrNotFound, or ErrMismatch for another client's request, which it
	// leaves unchanged.
	PollDevice(ctx context.Context, code Hash, clientID string, now time.Time) (Poll, error)
}

// Device is a request of a device without a browser, with the user's decision about it.
type Device struct {
	Code     Hash // of the device code
	UserCode Hash // of the user code
	ClientID string
	Resource string // canonical
	Scopes   oauth.Scopes
	Agent    string // the device's own name, as users see it
	Address  string // the address of the request, as users see it
	// ProvedAfter is the earliest acceptable time of the user's last proof of identity, zero for
	// any time. ACR is the required authentication context class, "" for any (RFC 9470 §4).
	ProvedAfter time.Time
	ACR         string
	CreatedAt   time.Time
	ExpiresAt   time.Time
	Interval    time.Duration // between two polls
	DecidedAt   time.Time     // zero: it waits for a decision
	GrantID     string        // "": not approved
}

// Poll is the result of PollDevice.
type Poll struct {
	Device
	Early bool
}
