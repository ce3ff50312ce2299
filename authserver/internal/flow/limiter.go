package flow

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/allowance"
	"github.com/mcp-authd/mcp-authd/internal/bounded"
	"github.com/mcp-authd/mcp-authd/internal/network"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// How many browsers may be sent to a provider. It takes no sign-in, and each leaves a row for ten
// minutes. A company whose people all come from one address at nine o'clock gets through: three
// thousand in ten minutes, and a person who has to wait waits a second. Ten such networks together
// affect others, and the rows of one process stay below some thirty thousand.
const (
	signInsOfNetwork = 5  // a second
	signInsInTotal   = 50 // a second
	signInBurst      = 60 // times that at once
	signInNetworks   = 10_000
)

// strangers is the key of all sign-ins of people who are not signed in; no network is named so.
const strangers = "strangers"

// signInLimiter bounds the sign-ins at providers of each network, and those of all strangers.
type signInLimiter struct{ buckets *allowance.Limiter }

func newSignInLimiter(l *allowance.Limits) *signInLimiter {
	return &signInLimiter{l.Limiter("sign-ins at providers", signInNetworks)}
}

// take counts one sign-in under each of the networks that it comes from, the smallest
// first, or returns the error that asks the person to wait. People who are signed in do not
// stand in line with strangers.
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
	e := oauth.NewError(oauth.SlowDown, "Too many people are signing in at once.")
	e.RetryAfter = time.Second
	return e
}

// signInOf is one sign-in from the bucket of a key, which has perSecond of them.
func signInOf(key string, perSecond int) allowance.Draw {
	return allowance.Draw{Key: key, Rate: bounded.PerSecond(float64(perSecond), perSecond*signInBurst)}
}
