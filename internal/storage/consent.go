package storage

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// VisitKey identifies the browser session and the requested consent: the client, the canonical
// resource (both may be empty), the place, and the client's current material.
type VisitKey struct {
	Session  Hash
	ClientID string
	Resource string
	Place    string // oauth.RedirectPlace of the response's destination
	Material Hash   // Client.Material
	// Unplaced also counts older consents, which have no place.
	Unplaced bool
	Now      time.Time
}

// Visit is a live session with its account. The method Visit returns ErrNotFound if the session is
// unknown or expired, or its account is disabled or deleted.
type Visit struct {
	Session   Session
	User      User
	Consented oauth.Scopes // nil: no consent for this client, resource, place and material
	Known     bool         // the user has consented to the same for some resource
}

// Approvals turns a user's approval into a code.
type Approvals interface {
	// Approve stores an approval in one round trip. It stores a.Client if it is not nil and its id
	// is not stored yet. It creates the grant, with the UpstreamID of the session, and its code.
	//
	// It remembers the consent for the place and the material. This is the union with earlier
	// consent for them, without declined scopes.
	//
	// ErrNotFound: the session is not live, or its account is disabled or is not a.Grant.UserID.
	// ErrRevoked: the client was deleted. ErrChanged: the store is authoritative for the client and
	// has another Material, or a.Remembered is no longer remembered. ErrPaused: the user has paused
	// the application at the resource, see Pauses. ErrExists, with no change: a grant with the id
	// is stored, so one of N approvals of the same grant succeeds.
	Approve(ctx context.Context, a Approval) error
	// Approved reports whether the stored approval equals one that Approve refused with ErrExists.
	// It must have the same user and scopes, and a code that could be redeemed now.
	Approved(ctx context.Context, a Approval) (bool, error)
	// Deny records until a time that the user denied the consent page of a grant. Approve then
	// returns ErrExists for it. Deny returns ErrExists if the page was approved: of a concurrent
	// Deny and Approve, one succeeds. Repeating Deny is not an error.
	Deny(ctx context.Context, grantID string, until time.Time) error
}

// SpentPage is the purpose, in Once, of answered consent pages. The id is the grant's.
const SpentPage = "consent page"

// Approval is the input of Approve.
type Approval struct {
	Session  Hash // the approving session
	Client   *Client
	Place    string // oauth.RedirectPlace of the response's destination, or DevicePlace
	Material Hash   // Client.Material of the client as shown to the user
	// Remembered is the earlier consent that this approval relies on: Visit.Consented for the same
	// place and material. It is neither extended nor renewed. Nil: the user was asked just now.
	Remembered oauth.Scopes
	// Declined are the requested scopes that the user did not grant. Earlier consent to them is
	// forgotten, also consent without a place.
	Declined oauth.Scopes
	Unplaced bool // Unplaced of the VisitKey that found Remembered
	// PageUntil is when the consent page expires. Zero: without a page, or not known.
	PageUntil time.Time
	Grant     Grant
	Code      Code
	// Clearance is the id of the tool call approval that the client sent the user here for, "" for
	// none. It moves to the grant in its current state, if it has the same user, client and
	// resource.
	Clearance string
	Now       time.Time
}

// Code is an authorization code with the values that a token request must present.
type Code struct {
	Hash        Hash
	RedirectURI string // as sent in the authorization request
	Challenge   string // S256
	ExpiresAt   time.Time
}
