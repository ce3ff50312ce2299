package verdict

import (
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// Token is a presented refresh token with its grant.
type Token interface {
	// Of returns the token's grant, or storage.ErrNotFound if the token does not belong to it.
	Of() (storage.Grant, error)
	// Live returns the idle expiry of a token that is not used, expired or revoked, otherwise
	// storage.ErrNotFound.
	Live(now time.Time) (time.Time, error)
}

// Presented is a numbered token with the state of its grant.
type Presented struct {
	storage.NumberedRefresh
	Numbered
}

// Of implements Token.
func (p Presented) Of() (storage.Grant, error) { return p.Grant, p.knows(p.NumberedRefresh) }

// Live implements Token.
func (p Presented) Live(now time.Time) (time.Time, error) {
	passage, refused := p.Judge(p.NumberedRefresh, storage.RotateRefresh{ClientID: p.Grant.ClientID, Now: now})
	switch {
	case refused != nil:
		return time.Time{}, storage.ErrNotFound
	case passage == Recovers && p.NumberedRefresh.ExpiresAt.Before(p.Grant.ExpiresAt):
		return p.NumberedRefresh.ExpiresAt, nil
	case passage == Recovers:
		return p.Grant.ExpiresAt, nil
	}
	return p.Numbered.ExpiresAt, nil
}

// Of implements Token.
func (t Hashed) Of() (storage.Grant, error) { return t.Grant, nil }

// Live implements Token.
func (t Hashed) Live(now time.Time) (time.Time, error) {
	if _, refused := t.Judge(storage.RotateRefresh{ClientID: t.Grant.ClientID, Now: now}); refused != nil {
		return time.Time{}, storage.ErrNotFound
	}
	return t.ExpiresAt, nil
}
