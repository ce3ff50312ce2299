package flow

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/allowance"
	"github.com/mcp-authd/mcp-authd/internal/bounded"
	"github.com/mcp-authd/mcp-authd/internal/network"
	"github.com/mcp-authd/mcp-authd/internal/sentence"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Limits of browsers that are sent to a provider. No sign-in is needed for this, and each browser
// leaves a row for ten minutes. A company whose employees share one address gets through at nine
// o'clock: three thousand sign-ins in ten minutes, and a user who has to wait waits a second. Ten
// such networks together affect others, and the rows of one process stay below about thirty
// thousand.
const (
	signInsOfNetwork = 5  // a second
	signInsInTotal   = 50 // a second
	signInBurst      = 60 // times the rate, at once
	signInNetworks   = 10_000
)

// strangers is the key of all sign-ins of users who are not signed in. It is not a valid network.
const strangers = "strangers"

// signInLimiter limits the sign-ins at providers for each network, and for all strangers together.
type signInLimiter struct{ buckets *allowance.Limiter }

func newSignInLimiter(l *allowance.Limits) *signInLimiter {
	return &signInLimiter{l.Limiter("sign-ins at providers", signInNetworks)}
}

// take counts one sign-in under each of its networks, smallest first. It returns an error that asks
// the user to wait if a limit is reached. The total limit for strangers does not apply to signed-in
// users.
func (l *signInLimiter) take(ctx context.Context, networks []string, signedIn bool) error {
	var draws []allowance.Draw
	for place, name := range networks {
		draws = append(draws, signInOf(name, network.Allowance(place)*signInsOfNetwork))
	}
	if !signedIn {
		draws = append(draws, signInOf(strangers, signInsInTotal))
	}
	if l.buckets.Take(ctx, draws...) == 0 {
		return nil
	}
	e := sentence.NewError(oauth.SlowDown, "Too many people are signing in at once.", "sign_ins")
	e.RetryAfter = time.Second
	return e
}

// signInOf draws one sign-in from a bucket that refills at perSecond.
func signInOf(key string, perSecond int) allowance.Draw {
	return allowance.Draw{Key: key, Rate: bounded.PerSecond(float64(perSecond), perSecond*signInBurst)}
}
