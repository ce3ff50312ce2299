package storage

import (
	"context"
	"time"
)

// MaxProgramKeys is how many live keys for programs a person has at most.
const MaxProgramKeys = 10

// ProgramKeys are the keys that people make for programs of theirs (PE-17): each is a client of the
// person for the client credentials grant, and the grant that it draws on. A key is listed and cut
// as that grant, by the verbs of Connections and all that end grants.
type ProgramKeys interface {
	// MakeProgramKey stores a key. ErrNotFound when the session is not live or not the person's,
	// or the account is disabled; ErrFull when the person has MaxProgramKeys live keys, of N that are
	// made at once no more are stored; ErrExists when the id is taken, also by the key itself.
	MakeProgramKey(ctx context.Context, k ProgramKey) error
	// ProgramKeys returns the live keys of a user, the newest first: their grants, of which
	// FirstUsedAt is not known, and UsedAt is zero until the first use.
	ProgramKeys(ctx context.Context, userID string, now time.Time) ([]Connection, error)
	// UseProgramKey notes the use of the key whose client has an id, and from where, and returns its
	// grant. ErrNotFound when the client is no such key; ErrRevoked, ErrExpired and ErrPaused change
	// nothing.
	UseProgramKey(ctx context.Context, u ProgramKeyUse) (Grant, error)
}

// ProgramKey is a key for a program that is made now.
type ProgramKey struct {
	Session Hash   // in which its person makes it; the grant rests on what that rests on
	Client  Client // of SourcePerson
	Grant   Grant  // of Client.ID; ForProgram is set by the store
}

// ProgramKeyUse is the request of a program that has proved its key.
type ProgramKeyUse struct {
	ClientID string
	From     string // the network that it comes from, as people are shown it; "": not known
	Now      time.Time
}
