package storage

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"time"
)

// MaxPauses is the maximum number of paused applications of one user. Merged applications can exceed it.
const MaxPauses = 256

// Pause stops an application's access to a resource for one user. It outlives the paused grants and
// the clients: while it lasts, every verb refuses the application a grant. It also applies to the
// client that was paused if that has since changed its name or redirect URIs (RFC 7592), and so its
// application.
type Pause struct {
	ID          string // PauseID
	UserID      string
	Application string // Client.Application
	Resource    string // canonical
	ClientID    string // the client of the grant that was paused
	ClientName  string // of that client; "": not known
	At          time.Time
}

// PauseID returns the id of the pause of an application of a user at a resource.
func PauseID(userID, application, resource string) string {
	digest := sha256.Sum256(appendList([]byte("pause"), userID, application, resource))
	return "pau_" + base64.RawURLEncoding.EncodeToString(digest[:16])
}

// Pauses lists and ends pauses. Connections.PauseGrant begins them. A pause ends when it is resumed, when the
// application is disconnected (WithdrawGrant, WithdrawApplication), when StopEverything or a cut of the person's
// grants takes it along, and with the account.
type Pauses interface {
	// Pauses returns up to MaxPauses pauses of a user, newest first. Applications that are merged have one each.
	Pauses(ctx context.Context, userID string) ([]Pause, error)
	// PauseByID returns a pause, or ErrNotFound.
	PauseByID(ctx context.Context, id string) (Pause, error)
	// PauseOf returns the pause that applies to a client of a user at a resource: the pause of its
	// application, or one that began with this client under another name. It returns ErrNotFound.
	PauseOf(ctx context.Context, userID string, client *Client, resource string) (Pause, error)
	// EndPause resumes a paused application, and those that are merged with it, like ResumeGrant, with or without a
	// live grant. It returns ErrNotFound if the user has no such pause.
	EndPause(ctx context.Context, userID, id string, now time.Time) error
	// GrantApplication returns the application of a grant. It returns ErrNotFound for an unknown
	// grant and for a grant without a user.
	GrantApplication(ctx context.Context, grantID string, now time.Time) (Application, error)
}

// Application is the application of a grant, for the grant's user and resource.
type Application struct {
	Key         string // Client.Application
	Connections int    // live grants that were redeemed, also of what is merged with it
}
