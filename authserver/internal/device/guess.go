package device

import (
	"context"
	"crypto/sha256"
	"errors"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/network"
	"github.com/mcp-authd/mcp-authd/storage"
)

// Guesser is a person who types a code: they have signed in, so that a stranger guesses nothing.
type Guesser struct {
	UserID   string
	Networks []string // where they are, the smallest first
}

// ErrWrong: no request waits under a code.
var ErrWrong = errors.New("device: no request waits under this code")

// ErrThrottled: there were too many wrong codes. No code is looked up for a while.
var ErrThrottled = errors.New("device: too many wrong codes")

// Window is for how long wrong codes count.
const Window = 15 * time.Minute

// The wrong codes that are free within the window (RFC 8628 §5.1, AS-240). Those of one person count
// when they are typed, so that no burst of them passes. All together find one of a thousand codes that
// wait with a chance of one in ten thousand.
const (
	wrongOfPerson  = 10
	wrongOfNetwork = 50
	wrongOfPrefix  = 20 // of codes with the same first half
	wrongInTotal   = 3000
)

// limit is a key with the wrong codes that are free under it.
type limit struct {
	key  storage.Hash
	free int
}

func key(parts ...string) storage.Hash {
	return sha256.Sum256([]byte("device codes\x00" + strings.Join(parts, "\x00")))
}

func limits(code string, g Guesser) []limit {
	out := []limit{
		{key("prefix", code[:codeLength/2]), wrongOfPrefix},
		{key("all"), wrongInTotal},
	}
	for place, name := range g.Networks {
		out = append(out, limit{key("network", name), network.Allowance(place) * wrongOfNetwork})
	}
	return out
}

// Find returns the request that waits under a code that was typed. ErrWrong; ErrThrottled; an
// *oauth.Error.
func (q *Requests) Find(ctx context.Context, typed string, g Guesser) (storage.Device, error) {
	code := Read(typed)
	if code == "" {
		return storage.Device{}, ErrWrong // a typing error finds nothing out
	}
	person := limit{key("person", g.UserID), wrongOfPerson}
	if err := q.enter(ctx, person, limits(code, g)); err != nil {
		return storage.Device{}, err
	}
	d, err := q.Store.DeviceByUserCode(ctx, q.MAC(code), q.Now())
	switch {
	case errors.Is(err, storage.ErrNotFound):
		q.Audit.Record(ctx, audit.DeviceUnknown)
		return d, q.wrong(ctx, limits(code, g))
	case err != nil:
		return d, refusal.Unavailable(err)
	}
	if err := q.Store.ClearFailures(ctx, person.key); err != nil {
		return d, refusal.Unavailable(err)
	}
	return d, nil
}

// Waiting is Find for a code that was found before: no guess.
func (q *Requests) Waiting(ctx context.Context, code string) (storage.Device, error) {
	d, err := q.Store.DeviceByUserCode(ctx, q.MAC(Read(code)), q.Now())
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return d, ErrWrong
	case err != nil:
		return d, refusal.Unavailable(err)
	}
	return d, nil
}

// enter counts a code as a wrong one of the person, until it turns out to be right.
func (q *Requests) enter(ctx context.Context, person limit, others []limit) error {
	n, err := q.Store.RecordFailure(ctx, person.key, q.Now(), Window)
	if err != nil {
		return refusal.Unavailable(err)
	}
	if n > person.free {
		return ErrThrottled
	}
	for _, l := range others {
		n, _, err := q.Store.FailureCount(ctx, l.key, q.Now(), Window)
		if err != nil {
			return refusal.Unavailable(err)
		}
		if n >= l.free {
			return ErrThrottled
		}
	}
	return nil
}

func (q *Requests) wrong(ctx context.Context, all []limit) error {
	for _, l := range all {
		if _, err := q.Store.RecordFailure(ctx, l.key, q.Now(), Window); err != nil {
			return refusal.Unavailable(err)
		}
	}
	return ErrWrong
}
