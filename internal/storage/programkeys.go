package storage

import (
	"context"
	"time"
)

// MaxProgramKeys is the maximum number of live program keys of a user.
const MaxProgramKeys = 10

// ProgramKeys stores the keys that users make for their own programs (PE-17). Each key is a client
// of the user for the client credentials grant, together with its grant. It is listed and revoked
// as that grant, by the verbs of Connections and all verbs that end grants.
type ProgramKeys interface {
	// MakeProgramKey stores a key. It returns ErrNotFound if the session is not live or not the
	// user's, or the account is disabled. It returns ErrFull if the user has MaxProgramKeys live
	// keys, a limit that also holds for concurrent calls. It returns ErrExists if the id is taken,
	// also by the same key.
	MakeProgramKey(ctx context.Context, k ProgramKey) error
	// ProgramKeys returns the grants of a user's live keys, newest first. Their FirstUsedAt is not
	// set, and UsedAt is zero until the first use.
	ProgramKeys(ctx context.Context, userID string, now time.Time) ([]Connection, error)
	// UseProgramKey records a use of the key with the client id, and the network, and returns its
	// grant. It returns ErrNotFound if the client is not such a key. It changes nothing if it
	// returns ErrRevoked, ErrExpired or ErrPaused.
	UseProgramKey(ctx context.Context, u ProgramKeyUse) (Grant, error)
}

// ProgramKey is a new program key.
type ProgramKey struct {
	Session Hash   // of the user who makes the key; the grant depends on the same upstream session
	Client  Client // of SourcePerson
	Grant   Grant  // its ClientID is Client.ID; the store sets ForProgram
}

// ProgramKeyUse is the request of a program that has authenticated with its key.
type ProgramKeyUse struct {
	ClientID string
	From     string // the network of the request, as users see it; "": not known
	Now      time.Time
}
