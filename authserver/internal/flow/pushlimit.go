package flow

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/allowance"
	"github.com/mcp-authd/mcp-authd/internal/bounded"
	"github.com/mcp-authd/mcp-authd/internal/network"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Limits of pushed requests; each leaves a row for a minute or two. Anyone who knows the id of a
// public client can push for it, so these requests are counted by network.
const (
	pushesOfClient  = 20 // a second, for an authenticated client
	pushesOfNetwork = 2  // a second
	pushesOfPublic  = 50 // a second, for all public clients
	pushBurst       = 30 // times the rate, at once
	pushNames       = 10_000
)

// publicClients is the key of all public clients. It is not a valid client or network.
const publicClients = "public clients"

// pushLimiter limits the requests that clients push.
type pushLimiter struct{ buckets *allowance.Limiter }

func newPushLimiter(l *allowance.Limits) *pushLimiter {
	return &pushLimiter{l.Limiter("pushed requests", pushNames)}
}

// take counts one request, or returns an error if the limit is reached.
func (l *pushLimiter) take(ctx context.Context, p Push) error {
	draws := []allowance.Draw{pushOf("client "+p.Client.ID, pushesOfClient)}
	if p.Unread || p.Client.Public() {
		draws = []allowance.Draw{pushOf(publicClients, pushesOfPublic)}
		for place, name := range p.Networks {
			draws = append(draws, pushOf(name, network.Allowance(place)*pushesOfNetwork))
		}
	}
	if l.buckets.Take(ctx, draws...) == 0 {
		return nil
	}
	e := oauth.NewError(oauth.SlowDown, "Too many requests are pushed at once.")
	e.RetryAfter = time.Second
	return e
}

// pushOf draws one request from a bucket that refills at perSecond.
func pushOf(key string, perSecond int) allowance.Draw {
	return allowance.Draw{Key: key, Rate: bounded.PerSecond(float64(perSecond), perSecond*pushBurst)}
}
