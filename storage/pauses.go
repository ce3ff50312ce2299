package storage

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"time"
)

// MaxPauses is how many applications one person can have paused at a time.
const MaxPauses = 256

// Pause is an application that gets nothing of a person at a resource. It outlives the grants that were paused,
// and the clients: no verb gives the application a grant while it lasts. Nor does the client by which it was
// paused get one when it has changed its name or its redirect URIs since (RFC 7592), and so its application.
type Pause struct {
	ID          string // PauseID
	UserID      string
	Application string // Client.Application
	Resource    string // canonical
	ClientID    string // the client of the grant by which it was paused
	ClientName  string // of that client; "": not known
	At          time.Time
}

// PauseID returns the id of the pause of an application, by its key, of a person at a resource.
func PauseID(userID, application, resource string) string {
	digest := sha256.Sum256(appendList([]byte("pause"), userID, application, resource))
	return "pau_" + base64.RawURLEncoding.EncodeToString(digest[:16])
}

// Pauses lists and ends pauses. Connections.PauseGrant begins them. A pause ends when it is resumed, when the
// application is disconnected (WithdrawGrant), when StopEverything or a cut of the person's grants takes it along,
// and with the account.
type Pauses interface {
	// Pauses returns all pauses of a person, the newest first. There are MaxPauses at most.
	Pauses(ctx context.Context, userID string) ([]Pause, error)
	// PauseByID returns a pause. ErrNotFound.
	PauseByID(ctx context.Context, id string) (Pause, error)
	// PauseOf returns the pause because of which a client gets nothing of a person at a resource: the pause of its
	// application, or one that was begun by the client itself, under whatever name. ErrNotFound.
	PauseOf(ctx context.Context, userID string, client *Client, resource string) (Pause, error)
	// EndPause resumes a paused application, as ResumeGrant does, with or without a live grant. ErrNotFound when
	// the person has no such pause.
	EndPause(ctx context.Context, userID, id string, now time.Time) error
	// GrantApplication returns the application of a grant. ErrNotFound for a grant of no person, and for an
	// unknown one.
	GrantApplication(ctx context.Context, grantID string, now time.Time) (Application, error)
}

// Application is the application of a grant, for the person of the grant and its resource.
type Application struct {
	Key         string // Client.Application
	Connections int    // live grants that were redeemed
}
