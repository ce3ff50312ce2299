package assembly

import (
	"time"

	"github.com/mcp-authd/mcp-authd/attempt"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
)

// attempts keeps what was asked and answered on the way to a token; nil when that is turned off. All
// replicas make digests by one key, so that a code that one has issued is found where another redeems it.
func (p Parts) attempts() (*attempt.Recorder, error) {
	if !p.Config.Attempts.Enabled {
		return nil, nil
	}
	ring, err := secrets.NewRing(p.Keys...)
	if err != nil {
		return nil, err
	}
	return attempt.NewRecorder(attempt.Config{
		Store:  p.Store,
		Key:    ring.Key("digests of attempts", 32),
		Probes: prober(ring, p.Now),
		Keep:   time.Duration(p.Config.Attempts.Keep),
		Now:    p.Now,
		Log:    p.Log,
	}), nil
}

// Prober signs the requests by which this installation tests itself.
func (p Parts) Prober() (*attempt.Prober, error) {
	ring, err := secrets.NewRing(p.Keys...)
	if err != nil {
		return nil, err
	}
	return prober(ring, p.Now), nil
}

func prober(ring *secrets.Ring, now func() time.Time) *attempt.Prober {
	return attempt.NewProber(ring.Key("own probes", 32), now)
}

// Attempts finds what was kept.
func (p Parts) Attempts() attempt.Finder { return attempt.Finder{Store: p.Store, Now: p.Now} }
