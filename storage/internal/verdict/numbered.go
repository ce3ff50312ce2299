package verdict

import (
	"bytes"
	"encoding/binary"
	"time"

	"github.com/mcp-authd/mcp-authd/storage"
)

// keptRotations is how many rotations before the last a grant remembers.
const keptRotations = 7

// RotationsSize is how many bytes they take at most.
const RotationsSize = 8 * keptRotations

// Numbered is what a grant knows of its refresh tokens.
type Numbered struct {
	Grant      storage.Grant
	Secret     []byte // its hash; nil: none was issued
	Generation int64  // of the newest token
	RotatedAt  time.Time
	ExpiresAt  time.Time
	// Rotations holds the RotatedAt of the generations before, newest first, 8 bytes each,
	// as far back as any grace goes.
	Rotations []byte
	Cut       bool // the client is deleted, or the user is gone or disabled
}

// Passage is what becomes of a token that was not refused.
type Passage int

// The passages of a token.
const (
	Rotates  Passage = iota // it is the newest
	Replays                 // it gets its successor again
	Recovers                // it is newer than any that the grant knows
)

// Judge names the cause for which t, presented with r, is refused, or what becomes of it.
// ErrSpent means that the grant is to be revoked (OAuth 2.1 §4.3.1, AS-95).
func (n Numbered) Judge(t storage.NumberedRefresh, r storage.RotateRefresh) (Passage, error) {
	if err := n.knows(t); err != nil {
		return 0, err
	}
	if err := foreign(n.Grant, n.Cut, r); err != nil {
		return 0, err
	}
	switch {
	case t.Generation > n.Generation:
		return Recovers, expired(t.ExpiresAt, r.Now)
	case t.Generation == n.Generation:
		return Rotates, expired(n.ExpiresAt, r.Now)
	}
	graced := func(at time.Time) bool { return r.Now.Before(at.Add(r.Grace)) }
	unused := t.Generation == n.Generation-1 // the successor
	switch at, known := n.rotated(t.Generation); {
	case known && graced(at), unused && graced(at.Add(r.Outage)):
		return Replays, nil
	case !known && (graced(t.IssuedAt) || len(n.Rotations) >= RotationsSize && graced(n.rotation(keptRotations-1))):
		return 0, storage.ErrSuperseded
	}
	return 0, storage.ErrSpent
}

func (n Numbered) knows(t storage.NumberedRefresh) error {
	if !bytes.Equal(n.Secret, t.Secret[:]) {
		return storage.ErrNotFound
	}
	return nil
}

// Rotation describes the rotation of a token that was rotated before, or is reused. A
// caller who may not know the grant learns nothing.
func (n Numbered) Rotation(t storage.NumberedRefresh, p Passage) storage.Rotation {
	if n.Grant.ID == "" {
		return storage.Rotation{}
	}
	at, _ := n.rotated(t.Generation)
	out := storage.Rotation{Grant: n.Grant, RotatedAt: at}
	if p == Replays {
		out.Generation, out.Replayed = t.Generation+1, true
	}
	return out
}

// rotated returns when a generation before the newest was rotated, if that is known.
func (n Numbered) rotated(generation int64) (time.Time, bool) {
	back := n.Generation - generation - 1 // rotations since
	switch {
	case back == 0:
		return n.RotatedAt, true
	case back < 0 || back > int64(len(n.Rotations)/8):
		return time.Time{}, false
	}
	return n.rotation(int(back) - 1), true
}

func (n Numbered) rotation(i int) time.Time {
	return time.UnixMilli(int64(binary.BigEndian.Uint64(n.Rotations[8*i:]))).UTC()
}

// Remembered is what a grant has to remember of its newest token when that is rotated: nil
// when every grace for the tokens before it is over, so that none needs to be remembered.
func Remembered(t storage.NumberedRefresh, now time.Time) []byte {
	if !now.Before(t.IssuedAt.Add(storage.MaxGrace)) {
		return nil
	}
	return binary.BigEndian.AppendUint64(nil, uint64(t.IssuedAt.UnixMilli()))
}

// Remember returns the Rotations of a grant once t is rotated. Before a token that the
// grant did not know, it knows of no other.
func (n Numbered) Remember(t storage.NumberedRefresh, p Passage, now time.Time) []byte {
	kept := Remembered(t, now)
	if kept == nil || p == Recovers {
		return kept
	}
	kept = append(kept, n.Rotations...)
	return kept[:min(len(kept), RotationsSize)]
}

// foreign refuses who has no right to the token, and what is wrong with its grant.
func foreign(g storage.Grant, cut bool, r storage.RotateRefresh) error {
	switch {
	case g.ClientID != r.ClientID: // AS-97
		return storage.ErrMismatch
	case r.Resource != "" && g.Resource != r.Resource: // RFC 8707 §2.2, AS-99
		return storage.ErrResource
	case !g.RevokedAt.IsZero(), cut:
		return storage.ErrRevoked
	case over(g.ExpiresAt, r.Now):
		return storage.ErrExpired
	case !g.PausedAt.IsZero():
		return storage.ErrPaused
	}
	return nil
}

func expired(at, now time.Time) error {
	if over(at, now) {
		return storage.ErrExpired
	}
	return nil
}
