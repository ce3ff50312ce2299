package storage

import (
	"context"
	"time"
)

// MaxHolds is how many applications can be paused or blocked at a time.
const MaxHolds = 1000

// FiledApplication is an application as an administrator sees it: all clients filed under one key.
// The key is Client.Application, or the key of the application that it was merged into.
type FiledApplication struct {
	Key           string
	Name          string       // of one of its clients, or of the hold if it has no clients
	Source        ClientSource // of the same client
	RedirectURIs  []string     // of the same client
	Registrations int          // clients that were not deleted
	CreatedAt     time.Time    // of the first of them
	LastUsedAt    time.Time    // of any of them; zero: never
	Hold          *Hold        // nil: neither paused nor blocked
	Merged        []string     // keys merged into it
}

// Hold pauses or blocks an application for everyone, until an administrator releases it.
type Hold struct {
	Application string // the key
	Name        string // of the application when the hold began
	Blocked     bool   // it cannot register again, and its grants have ended; false: it is paused
	By          string // who holds it
	At          time.Time
}

// ApplicationCount is the number of live grants of an application, and of their users.
type ApplicationCount struct{ Grants, People int }

// Applications groups clients into applications, and holds these for everyone. One row decides:
// while an application is held, no token of its clients is active, however many grants and clients
// there are. Code that resolves clients must refuse a client whose Application is in Holds.
type Applications interface {
	// FiledApplications returns applications by key, beginning with the one after q.After: all, or
	// those with the text in their name or key. Clients of the configuration are not included.
	FiledApplications(ctx context.Context, q Search) ([]FiledApplication, error)
	// FiledApplication returns the application with the key, or into which the key was merged. It
	// returns ErrNotFound.
	FiledApplication(ctx context.Context, key string) (FiledApplication, error)
	// ApplicationClients returns up to limit clients of an application with an id greater than
	// after, by id.
	ApplicationClients(ctx context.Context, key, after string, limit int) ([]Client, error)
	// ApplicationKeys returns, for each client id, the key of the application that the client counts as. A client
	// that is not stored counts by its id.
	ApplicationKeys(ctx context.Context, clientIDs []string) (map[string]string, error)
	// ApplicationGrants counts the live grants of an application up to limit.
	ApplicationGrants(ctx context.Context, key string, now time.Time, limit int) (ApplicationCount, error)
	// HoldApplication pauses or blocks an application. A block cuts its grants like CutGrants, and
	// takes precedence over a pause. It returns ErrFull if there are MaxHolds.
	HoldApplication(ctx context.Context, h Hold) error
	// ReleaseApplication ends a hold. It returns ErrNotFound if the application is not held.
	ReleaseApplication(ctx context.Context, key string) error
	// Holds returns all holds by key. A held application has an entry for each key merged into it.
	Holds(ctx context.Context) (map[string]Hold, error)
	// DeleteApplication deletes the clients of an application like DeleteClient, and cuts its
	// grants.
	DeleteApplication(ctx context.Context, key string, now time.Time) error
	// MergeApplications has the clients of one key, and of those that count as it, count as into from then on. A
	// person who has paused one of them has then paused each of them at that resource, as PauseGrant does,
	// also if the pause begins meanwhile.
	// ErrExists when key or into counts as another one already, ErrMismatch when one of the two is held and the
	// other is not, ErrBusy while grants of one of them are being cut.
	MergeApplications(ctx context.Context, key, into string, now time.Time) error
	// SplitApplication ends a merge. A hold of the application stays for both. It returns
	// ErrNotFound if key is not merged into another one, and ErrBusy while grants of one of them
	// are being cut.
	SplitApplication(ctx context.Context, key string, now time.Time) error
}
