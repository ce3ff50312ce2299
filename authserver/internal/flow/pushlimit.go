package flow

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/allowance"
	"github.com/mcp-authd/mcp-authd/internal/bounded"
	"github.com/mcp-authd/mcp-authd/internal/network"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// How many requests may be pushed: each leaves a row for a minute or two. Anyone who knows the id of a
// public client can push in its name, so those are counted by where they come from.
const (
	pushesOfClient  = 20 // a second, of a client that has authenticated
	pushesOfNetwork = 2  // a second
	pushesOfPublic  = 50 // a second, of all public clients
	pushBurst       = 30 // times that at once
	pushNames       = 10_000
)

// publicClients is the key of all public clients; no client and no network is named so.
const publicClients = "public clients"

// pushLimiter bounds the requests that clients push.
type pushLimiter struct{ buckets *allowance.Limiter }

func newPushLimiter(l *allowance.Limits) *pushLimiter {
	return &pushLimiter{l.Limiter("pushed requests", pushNames)}
}

// take makes room for one more.
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

// pushOf is one request from the bucket of a key, which has perSecond of them.
func pushOf(key string, perSecond int) allowance.Draw {
	return allowance.Draw{Key: key, Rate: bounded.PerSecond(float64(perSecond), perSecond*pushBurst)}
}
