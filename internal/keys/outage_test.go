package keys

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/testkit/installation"
)

// away is a store that is unavailable for a while.
type away struct {
	storage.Store
	now      func() time.Time
	from, to time.Time
}

var errStoreAway = errors.New("the store is away")

func (a *away) Keys(ctx context.Context, now time.Time) ([]storage.SigningKey, error) {
	if at := a.now(); !at.Before(a.from) && at.Before(a.to) {
		return nil, errStoreAway
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return a.Store.Keys(ctx, now)
}

// TestRotationBeforeOutage: at any time and duration of an outage after a rotation, tokens signed
// while the store is available have a key that other replicas publish. The replicas are called, and
// so read the store, at different times.
func TestRotationBeforeOutage(t *testing.T) {
	shared := openStore(t)
	c := installation.NewClock()
	newManager(t, Config{Store: shared, Now: c.Now}) // creates the first key
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 0))
		upTo := func(d time.Duration) time.Duration { return time.Duration(r.Int64N(int64(d))) }
		c.Advance(publishedCache)
		start := c.Now()
		from := start.Add(upTo(known))
		to := from.Add(upTo([]time.Duration{2 * time.Second, 10 * time.Second, time.Minute}[seed%3]))
		replica := func() *Manager {
			return newManager(t, Config{Store: &away{shared, c.Now, from, to}, Now: c.Now})
		}
		signs, publishes := replica(), replica()
		old := kid(t, signs, storage.KeyActive)
		must(t, signs.Rotate(t.Context()))
		for c.Now().Before(to.Add(2 * known)) {
			c.Advance(upTo(time.Second))
			for _, m := range []*Manager{signs, publishes} { // as Tend and clients do, also during an outage
				if r.IntN(3) == 0 {
					_, _, err := m.JWKS(t.Context())
					must(t, err)
				}
			}
			if r.IntN(3) > 0 || !c.Now().Before(from) && c.Now().Before(to) { // the outage prevents grants
				continue
			}
			if err := published(t, publishes, sign(t, signs)); err != nil {
				t.Fatalf("AS-121 seed %d: %s after the rotation, of which the store was away from %s to %s: %v",
					seed, c.Now().Sub(start), from.Sub(start), to.Sub(start), err)
			}
		}
		if strings.Contains(header(t, sign(t, signs)), old) {
			t.Errorf("AS-121 seed %d: the new key does not sign at the end", seed)
		}
	}
}

// A caller that cancels during a read does not keep new keys from the others.
func TestCallerThatGoesAway(t *testing.T) {
	c := installation.NewClock()
	store := &away{Store: openStore(t), now: c.Now}
	m, other := newManager(t, Config{Store: store, Now: c.Now}), newManager(t, Config{Store: store, Now: c.Now})
	must(t, other.RevokeAll(t.Context()))
	token := sign(t, other)
	c.Advance(cacheTTL)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := m.JWKS(gone)
	must(t, err)
	must(t, published(t, m, token))
}
