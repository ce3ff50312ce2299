package storage

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// DevicePlace is the Place of a consent whose answer goes to a device that asks for it (RFC 8628).
// No redirect URI has that place.
const DevicePlace = "device"

// DeviceSlack is how much earlier than agreed a device may ask again: what was sent at the
// right time may arrive earlier than the request before it has.
const DeviceSlack = time.Second

// DeviceSlowDown is by how much the interval of a device that asks too early grows (RFC 8628 §3.5).
const DeviceSlowDown = 5 * time.Second

// Devices holds the requests of devices without a browser (RFC 8628).
type Devices interface {
	// PutDevice stores a request. ErrExists when one of its codes is taken.
	PutDevice(ctx context.Context, d Device) error
	// DeviceByUserCode returns the request that waits for a decision under a user code.
	// ErrNotFound for any other code.
	DeviceByUserCode(ctx context.Context, userCode Hash, now time.Time) (Device, error)
	// ApproveDevice is Approve that also decides the request whose device code is a.Code.Hash,
	// client a.Grant.ClientID and resource a.Grant.Resource: of N concurrent decisions one counts. The
	// device code then is the code of the grant, and RedeemCode redeems it. ErrSpent when the
	// request was decided before, ErrExpired when it has expired or is not known any more, and
	// the errors of Approve, which leave the request undecided.
	ApproveDevice(ctx context.Context, a Approval) error
	// DenyDevice decides a request against it. ErrSpent when it was decided before, ErrExpired
	// when it has expired or is not known any more.
	DenyDevice(ctx context.Context, code Hash, now time.Time) error
	// PollDevice notes that the client of a request asks for the decision, and returns the
	// request, expired ones for another hour. A client that asks earlier than Interval, less
	// DeviceSlack, after it did before is Early, and its Interval grows by DeviceSlowDown.
	// ErrNotFound; ErrMismatch for another client's, which is left as it is.
	PollDevice(ctx context.Context, code Hash, clientID string, now time.Time) (Poll, error)
}

// Device is a request of a device without a browser, and what a person has decided about it.
type Device struct {
	Code     Hash // of the device code
	UserCode Hash // of the user code
	ClientID string
	Resource string // canonical
	Scopes   oauth.Scopes
	Agent    string // what the device calls itself, as people are shown it
	Address  string // where it asks from, as people are shown it
	// ProvedAfter is since when the person has to have proved who they are, zero for any time; ACR how well,
	// "" for any way (RFC 9470 §4).
	ProvedAfter time.Time
	ACR         string
	CreatedAt   time.Time
	ExpiresAt   time.Time
	Interval    time.Duration // between two polls
	DecidedAt   time.Time     // zero: it waits for a decision
	GrantID     string        // "": not approved
}

// Poll is the answer to PollDevice.
type Poll struct {
	Device
	Early bool
}
