package verdict

import (
	"bytes"
	"encoding/binary"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// keptRotations is how many rotations before the last one a grant remembers.
const keptRotations = 7

// RotationsSize is the maximum size of Numbered.Rotations in bytes.
const RotationsSize = 8 * keptRotations

// Numbered is the state of a grant's refresh tokens.
type Numbered struct {
	Grant      storage.Grant
	Secret     []byte // its hash; nil: no token was issued
	Generation int64  // of the newest token
	RotatedAt  time.Time
	ExpiresAt  time.Time
	// Rotations holds RotatedAt of the earlier generations, newest first, 8 bytes each, back to the
	// longest grace.
	Rotations []byte
	Cut       bool // the client is deleted, or the user is gone or disabled
}

// Passage is the outcome of an accepted token.
type Passage int

// The passages of a token.
const (
	Rotates  Passage = iota // it is the newest token
	Replays                 // it gets its successor again
	Recovers                // it is newer than the grant knows
)

// Judge returns why t, presented with r, is refused, or its outcome. ErrSpent means that the grant
// must be revoked (OAuth 2.1 §4.3.1, AS-95).
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

// Rotation describes the rotation of a token that was rotated earlier or is reused. It returns an
// empty Rotation to a caller who must not learn about the grant.
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

// rotated returns when an older generation was rotated, if that is known.
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

// Remembered returns the bytes that a grant must remember of its newest token when that is rotated.
// It returns nil if every grace for the earlier tokens is over.
func Remembered(t storage.NumberedRefresh, now time.Time) []byte {
	if !now.Before(t.IssuedAt.Add(storage.MaxGrace)) {
		return nil
	}
	return binary.BigEndian.AppendUint64(nil, uint64(t.IssuedAt.UnixMilli()))
}

// Remember returns the Rotations of a grant after t is rotated. After a recovered token, the grant
// knows no earlier rotations.
func (n Numbered) Remember(t storage.NumberedRefresh, p Passage, now time.Time) []byte {
	kept := Remembered(t, now)
	if kept == nil || p == Recovers {
		return kept
	}
	kept = append(kept, n.Rotations...)
	return kept[:min(len(kept), RotationsSize)]
}

// foreign refuses a request of another client or for another resource, and an unusable grant.
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
