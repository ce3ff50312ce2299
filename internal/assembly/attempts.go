package assembly

import (
	"time"

	"github.com/mcp-authd/mcp-authd/internal/attempt"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
)

// attempts returns the recorder of attempts, or nil if it is off. All replicas use one key for
// digests, so a code issued by one replica is recognized when another redeems it.
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
		Now:    func() time.Time { return p.Store.Correct(p.Now()) }, // replicas order their steps by it
		Log:    p.Log,
	}), nil
}

// Prober returns the signer of the requests that this installation sends to test itself.
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

// Attempts returns the finder of recorded attempts.
func (p Parts) Attempts() attempt.Finder { return attempt.Finder{Store: p.Store, Now: p.Now} }
