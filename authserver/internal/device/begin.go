package device

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/allowance"
	"github.com/mcp-authd/mcp-authd/internal/bounded"
	"github.com/mcp-authd/mcp-authd/internal/network"
	"github.com/mcp-authd/mcp-authd/internal/sentence"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Limits of new requests. They need no sign-in, and each leaves a row; the row of a device stays
// for an hour and ten minutes.
const (
	ofNetwork = 2  // a second
	inTotal   = 20 // a second
	burst     = 30 // times the rate, at once
	networks  = 10_000
	everybody = "" // the key of all requests; not a valid network
)

// beginnings limits new requests.
type beginnings struct{ *allowance.Limiter }

func newBeginnings(l *allowance.Limits, purpose string) beginnings {
	return beginnings{l.Limiter(purpose, networks)}
}

// take counts one request, or returns an error with the given text if a limit is reached.
func (b beginnings) take(ctx context.Context, from []string, text sentence.Sentence) error {
	draws := []allowance.Draw{drawOf(everybody, inTotal)}
	for place, name := range from {
		draws = append(draws, drawOf(name, network.Allowance(place)*ofNetwork))
	}
	if b.Take(ctx, draws...) == 0 {
		return nil
	}
	e := text.Error(oauth.SlowDown)
	e.RetryAfter = time.Second
	return e
}

func drawOf(key string, perSecond int) allowance.Draw {
	return allowance.Draw{Key: key, Rate: bounded.PerSecond(float64(perSecond), perSecond*burst)}
}
