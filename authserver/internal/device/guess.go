package device

import (
	"context"
	"crypto/sha256"
	"errors"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/network"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// Guesser is a user who types a code. Typing codes requires a sign-in, so that strangers cannot
// guess.
type Guesser struct {
	UserID   string
	Networks []string // the user's networks, smallest first
}

// ErrWrong reports that no request waits under a code.
var ErrWrong = errors.New("device: no request waits under this code")

// ErrThrottled reports that there were too many wrong codes. No code is looked up for a while.
var ErrThrottled = errors.New("device: too many wrong codes")

// Window is how long wrong codes count.
const Window = 15 * time.Minute

// Permitted wrong codes within the window (RFC 8628 §5.1, AS-240). A code counts against its user
// when it is typed, so that concurrent guesses count. The count is reduced only if the code is
// right or was not looked up. A right code does not clear wrong ones, because an attacker has right
// codes of their own requests. Many users share the other limits, so these stop only a user who has
// already typed `spared` wrong codes. docs/threat-model.md has the calculation.
const (
	wrongOfPerson  = 10
	spared         = 3 // per user, whatever others have typed
	wrongOfNetwork = 50
	wrongOfPrefix  = 20 // of codes with the same first half
	wrongInTotal   = 1000
)

// limit is a key and its number of permitted wrong codes.
type limit struct {
	key  storage.Hash
	free int
}

func key(parts ...string) storage.Hash {
	return sha256.Sum256([]byte("device codes\x00" + strings.Join(parts, "\x00")))
}

// limits returns the limits that users share.
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

// guesses limits guesses of codes, for devices and browsers together.
type guesses struct {
	store storage.Failures
	audit *audit.Recorder
	now   func() time.Time
}

// look looks up a typed code; an unknown code counts as a guess. Its error is ErrWrong,
// ErrThrottled or an *oauth.Error.
func (q guesses) look(ctx context.Context, code string, g Guesser, up func() error) error {
	if code == "" {
		return ErrWrong // a typing error is not a guess
	}
	person, shared := key("person", g.UserID), limits(code, g)
	switch err := q.enter(ctx, person, shared); {
	case errors.Is(err, ErrThrottled): // the code was not looked up
		if back := q.back(ctx, person); back != nil {
			return back
		}
		return err
	case err != nil:
		return err
	}
	switch err := up(); {
	case errors.Is(err, storage.ErrNotFound):
		q.audit.Record(ctx, audit.DeviceUnknown)
		return q.wrong(ctx, shared)
	case err != nil:
		return refusal.Unavailable(err)
	}
	return q.back(ctx, person)
}

// back reduces the count of a user by one.
func (q guesses) back(ctx context.Context, person storage.Hash) error {
	if err := q.store.ReturnTry(ctx, person); err != nil {
		return refusal.Unavailable(err)
	}
	return nil
}

// waiting returns the error of looking up a code that was found before, which does not count as a
// guess.
func waiting(err error) error {
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return ErrWrong
	case err != nil:
		return refusal.Unavailable(err)
	}
	return nil
}

// enter counts a code as wrong for the user until it turns out to be right.
func (q guesses) enter(ctx context.Context, person storage.Hash, shared []limit) error {
	n, err := q.store.RecordFailure(ctx, person, q.now(), Window)
	switch {
	case err != nil:
		return refusal.Unavailable(err)
	case n > wrongOfPerson:
		return ErrThrottled
	case n <= spared:
		return nil
	}
	for _, l := range shared {
		n, _, err := q.store.FailureCount(ctx, l.key, q.now(), Window)
		if err != nil {
			return refusal.Unavailable(err)
		}
		if n >= l.free {
			return ErrThrottled
		}
	}
	return nil
}

func (q guesses) wrong(ctx context.Context, all []limit) error {
	for _, l := range all {
		if _, err := q.store.RecordFailure(ctx, l.key, q.now(), Window); err != nil {
			return refusal.Unavailable(err)
		}
	}
	return ErrWrong
}
