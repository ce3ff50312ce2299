package verdict

import (
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// Hashed is a stored refresh token that has a row, with its grant. It can be removed once all
// grants older than step 12 of the schema are gone, tokens.refresh_max_ttl after that step.
type Hashed struct {
	Grant     storage.Grant
	ExpiresAt time.Time
	RotatedAt time.Time
	Sealed    []byte
	Successor *int64 // the generation of a successor without a row
	Cut       bool   // the client is deleted, or the user is gone or disabled
}

// Judge returns why r was refused, or grants a replay. ErrSpent means that the grant must be
// revoked. If it returns neither, the row has changed since: try again.
func (t Hashed) Judge(r storage.RotateRefresh) (replay bool, err error) {
	if err := foreign(t.Grant, t.Cut, r); err != nil {
		return false, err
	}
	switch {
	case !t.RotatedAt.IsZero():
		// A swept successor cannot be repeated, so this is reuse.
		if len(t.Sealed) > 0 && r.Now.Before(t.RotatedAt.Add(r.Grace)) {
			return true, nil
		}
		return false, storage.ErrSpent
	case over(t.ExpiresAt, r.Now):
		return false, storage.ErrExpired
	}
	return false, nil
}

// Rotation describes the token's rotation.
func (t Hashed) Rotation(replayed bool) storage.Rotation {
	out := storage.Rotation{Grant: t.Grant, RotatedAt: t.RotatedAt, Replayed: replayed}
	if !replayed {
		return out
	}
	out.Sealed = t.Sealed
	if t.Successor != nil {
		out.Generation = *t.Successor
	}
	return out
}
