package device

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/allowance"
	"github.com/mcp-authd/mcp-authd/internal/bounded"
	"github.com/mcp-authd/mcp-authd/internal/network"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// How many requests may begin: it takes no sign-in, and each leaves a row, those of devices for an
// hour and ten minutes.
const (
	ofNetwork = 2  // a second
	inTotal   = 20 // a second
	burst     = 30 // times that at once
	networks  = 10_000
	everybody = "" // the key of all requests; no network is named so
)

// beginnings limits how many requests begin.
type beginnings struct{ *allowance.Limiter }

func newBeginnings(l *allowance.Limits, purpose string) beginnings {
	return beginnings{l.Limiter(purpose, networks)}
}

// take makes room for one more, or refuses it in the given words.
func (b beginnings) take(ctx context.Context, from []string, refusal string) error {
	draws := []allowance.Draw{drawOf(everybody, inTotal)}
	for place, name := range from {
		draws = append(draws, drawOf(name, network.Allowance(place)*ofNetwork))
	}
	if b.Take(ctx, draws...) == 0 {
		return nil
	}
	e := oauth.NewError(oauth.SlowDown, refusal)
	e.RetryAfter = time.Second
	return e
}

func drawOf(key string, perSecond int) allowance.Draw {
	return allowance.Draw{Key: key, Rate: bounded.PerSecond(float64(perSecond), perSecond*burst)}
}
