package storage

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// VisitKey names the browser session, and the consent that is asked for: of which client
// and canonical resource (both may be empty), for which place and for the client as it is
// now.
type VisitKey struct {
	Session  Hash
	ClientID string
	Resource string
	Place    string // oauth.RedirectPlace of where the answer goes
	Material Hash   // Client.Material
	// Unplaced counts consents as well that were given before places were kept.
	Unplaced bool
	Now      time.Time
}

// Visit is a live session with its account. Visit returns ErrNotFound when the
// session is unknown or expired, or its account is disabled or gone.
type Visit struct {
	Session   Session
	User      User
	Consented oauth.Scopes // nil: no consent for this client, resource, place and material
	Known     bool         // the person has consented to the same for some resource
}

// Approvals turns a person's approval into a code.
type Approvals interface {
	// Approve remembers the consent for the place and the material (the union with what
	// was consented for them before, without what is declined), stores the client when a.Client is not nil and the
	// id is not yet stored, and creates the grant, with the UpstreamID of the session, and
	// its code, in one round trip. ErrNotFound when the session is not live or its account
	// is disabled or is not a.Grant.UserID; ErrRevoked when the client was deleted;
	// ErrChanged when the store has the last word on the client and has another Material
	// of it, or when a.Remembered is no longer remembered; ErrPaused while the person has paused the application
	// at the resource, see Pauses; ErrExists, and nothing is changed, when a
	// grant with the id is stored: of N that approve the same one does.
	Approve(ctx context.Context, a Approval) error
	// Approved reports, of an approval that was ErrExists, whether what is stored is the same one: of
	// that person, with those scopes, and with a code that could be redeemed now.
	Approved(ctx context.Context, a Approval) (bool, error)
	// Deny keeps until a time that the page of a grant was answered by a no: to approve on it is
	// ErrExists. ErrExists when it was approved: of one that denies and one that approves, one does. To
	// deny again is no error.
	Deny(ctx context.Context, grantID string, until time.Time) error
}

// SpentPage is the purpose, as Once has it, of pages that were answered. The id is that of the grant.
const SpentPage = "consent page"

// Approval is what Approve stores.
type Approval struct {
	Session  Hash // the session that approves
	Client   *Client
	Place    string // oauth.RedirectPlace of where the answer goes, or DevicePlace
	Material Hash   // Client.Material of the client that was shown
	// Remembered is the earlier consent that the approval rests on, Visit.Consented for
	// the same place and material; it is neither widened nor renewed. Nil: the person was
	// asked just now.
	Remembered oauth.Scopes
	// Declined is what the person has not granted of what they were asked: an earlier consent to it,
	// also one without a place, is forgotten.
	Declined oauth.Scopes
	Unplaced bool // as in the VisitKey that Remembered was found by
	// PageUntil is until when the page on which it was given could be answered; zero: of no page, or of
	// one that is not known.
	PageUntil time.Time
	Grant     Grant
	Code      Code
	// Clearance is the id of a clearance for which the client has sent its person here, "" for none: it
	// goes over to the grant, in the state that it has, where it is of the same person, client and resource.
	Clearance string
	Now       time.Time
}

// Code is an authorization code, bound to all that must be presented with it.
type Code struct {
	Hash        Hash
	RedirectURI string // as sent in the authorization request
	Challenge   string // S256
	ExpiresAt   time.Time
}
