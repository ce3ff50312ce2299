package storage

import (
	"context"
	"time"
)

// MaxHolds is how many applications can be paused or blocked at a time.
const MaxHolds = 1000

// FiledApplication is an application as an operator sees it: all clients that are filed under one key. The key is
// that of Client.Application, or of the application that it was merged into.
type FiledApplication struct {
	Key           string
	Name          string       // of one of its clients, or of the hold when there is none
	Source        ClientSource // of the same client
	RedirectURIs  []string     // of the same client
	Registrations int          // clients that were not deleted
	CreatedAt     time.Time    // of the first of them
	LastUsedAt    time.Time    // of any of them; zero: never
	Hold          *Hold        // nil: it is neither paused nor blocked
	Merged        []string     // keys that count as it
}

// Hold is what the operator keeps from an application, for everyone, until it is released.
type Hold struct {
	Application string // the key
	Name        string // of the application at that time
	Blocked     bool   // it may not register again, and its grants have ended; otherwise it is paused
	By          string // who holds it
	At          time.Time
}

// ApplicationCount says how many live grants an application has, and of how many people.
type ApplicationCount struct{ Grants, People int }

// Applications files clients under applications, and holds these for everyone. One row decides: while an
// application is held, no token of a client of it is active, whatever the number of grants and clients. Whoever
// resolves clients refuses a client whose Application is in Holds.
type Applications interface {
	// FiledApplications returns applications by key, from the one after q.After on: all of them, or those that
	// have a text in their name or key. Clients of the configuration are not among them.
	FiledApplications(ctx context.Context, q Search) ([]FiledApplication, error)
	// FiledApplication returns one by its key, or by a key that counts as it. ErrNotFound.
	FiledApplication(ctx context.Context, key string) (FiledApplication, error)
	// ApplicationClients returns the clients of an application, by id, from the one after after on.
	ApplicationClients(ctx context.Context, key, after string, limit int) ([]Client, error)
	// ApplicationGrants counts the live grants of an application up to limit.
	ApplicationGrants(ctx context.Context, key string, now time.Time, limit int) (ApplicationCount, error)
	// HoldApplication pauses or blocks an application. A block cuts its grants as CutGrants does, and goes before
	// a pause. ErrFull when there are MaxHolds.
	HoldApplication(ctx context.Context, h Hold) error
	// ReleaseApplication ends a hold. ErrNotFound.
	ReleaseApplication(ctx context.Context, key string) error
	// Holds returns all holds by key, with one for each key that counts as an application that is held.
	Holds(ctx context.Context) (map[string]Hold, error)
	// DeleteApplication deletes the clients of an application as DeleteClient does, and cuts its grants.
	DeleteApplication(ctx context.Context, key string, now time.Time) error
	// MergeApplications has the clients of one key, and of those that count as it, count as into from then on.
	// ErrExists when key or into counts as another one already, ErrMismatch when one of the two is held and the
	// other is not, ErrBusy while grants of one of them are being cut.
	MergeApplications(ctx context.Context, key, into string, now time.Time) error
	// SplitApplication ends a merge. The hold of the application stays for both. ErrNotFound when key does not
	// count as another one, ErrBusy as above.
	SplitApplication(ctx context.Context, key string, now time.Time) error
}
