package thirdparty

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/storage"
	"github.com/mcp-authd/mcp-authd/thirdparty/internal/provider"
)

const (
	// patience is how long a request waits for the answer that another replica fetches.
	patience = 10 * time.Second
	// storeTimeout bounds what is written after the request that wanted it has gone.
	storeTimeout = 10 * time.Second
)

// Check asks the provider whether a session stands, unless it has confirmed it within
// maxAge; zero stands for the connector's CheckEvery (AS-218). storage.ErrRevoked: the
// session has ended, and with it its grants, or its provider is not configured. An
// *oauth.Error with temporarily_unavailable: the server cannot tell now.
func (d *Delegation) Check(ctx context.Context, upstreamID string, maxAge time.Duration) error {
	_, _, err := d.stand(ctx, upstreamID, func(c *connector, u storage.Upstream) bool {
		age := maxAge
		if age <= 0 {
			age = c.CheckEvery
		}
		return c.Detached || d.now().Sub(u.CheckedAt) < age
	})
	return err
}

// Permit returns which of the scopes of a resource the person may have, by what the
// provider last said about them, and for operators which rules withhold the others.
// storage.ErrRevoked as with Check.
func (d *Delegation) Permit(
	ctx context.Context, upstreamID, resource string, scopes oauth.Scopes,
) (left oauth.Scopes, withheldBy string, err error) {
	u, c, err := d.live(ctx, upstreamID)
	if err != nil {
		return nil, "", err
	}
	held, err := d.open(u)
	if err != nil {
		return nil, "", c.unopened(err)
	}
	left, withheldBy = c.permit(held.Profile, resource, scopes)
	return left, withheldBy, nil
}

// unopened is the error for a row that cannot be opened.
func (c *connector) unopened(err error) error {
	if errors.Is(err, storage.ErrRevoked) {
		return err
	}
	return c.unavailable(err)
}

// live returns a session that has not ended, with its connector.
func (d *Delegation) live(ctx context.Context, id string) (storage.Upstream, *connector, error) {
	if err := d.settle(ctx); err != nil {
		return storage.Upstream{}, nil, err
	}
	u, err := d.cfg.Store.Upstream(ctx, id)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return u, nil, errEnded("")
	case err != nil:
		return u, nil, fmt.Errorf("thirdparty: check: %w", err)
	case !u.EndedAt.IsZero():
		return u, nil, errEnded(u.EndReason)
	}
	c, known := d.byID[u.Connector]
	if !known {
		return u, nil, errEnded("the connector is not configured any more")
	}
	return u, c, nil
}

// stand returns a session as soon as it is good enough, or the provider was asked about it
// by this call or by another one meanwhile.
func (d *Delegation) stand(
	ctx context.Context, id string, enough func(*connector, storage.Upstream) bool,
) (storage.Upstream, *connector, error) {
	var awaited int64 // the version that another replica holds
	pause := 25 * time.Millisecond
	for began := time.Now(); ; pause = min(2*pause, time.Second/2) {
		u, c, err := d.live(ctx, id)
		if err != nil {
			return u, c, err
		}
		if enough(c, u) {
			return u, c, nil
		}
		// Who asked elsewhere has stored something that is not enough, and puts it off.
		settled := awaited != 0 && awaited != u.Version && u.DueAt.After(d.now())
		if settled || !d.health[c.ID].MayAsk(u.ID, d.now()) || time.Since(began) > patience {
			return u, c, d.judge(c, u, provider.ErrUnreachable)
		}
		switch err := d.inquire(ctx, c, u); {
		case err == nil:
			return d.live(ctx, id)
		case errors.Is(err, errHeld):
			awaited = u.Version
			if err := wait(ctx, pause); err != nil {
				return u, c, c.unavailable(err)
			}
		case errors.Is(err, errUnanswered):
			return u, c, d.judge(c, u, err)
		default:
			return u, c, err
		}
	}
}

// judge decides without the provider: its last word holds for as long as an outage may
// last, and then the server cannot tell. An outage never ends anything.
func (d *Delegation) judge(c *connector, u storage.Upstream, cause error) error {
	if d.now().Sub(u.CheckedAt) < c.Outage {
		return nil
	}
	return c.unavailable(cause)
}

// unavailable is the protocol error for what the server cannot tell now.
func (c *connector) unavailable(cause error) *oauth.Error {
	e := c.say(oauth.TemporarilyUnavailable, sayUnknown)
	e.RetryAfter = retryAfter
	return e.Because(cause)
}

// open opens what a row holds. storage.ErrRevoked: it came from another provider than the
// one that the connector stands for now.
func (d *Delegation) open(u storage.Upstream) (holding, error) {
	held, err := d.vault.open(u)
	if err != nil {
		return held, fmt.Errorf("thirdparty: session %s: %w: %w", u.ID, errUnopened, err)
	}
	if c, known := d.byID[u.Connector]; known && held.Source != "" && held.Source != c.source() {
		return holding{}, errEnded("the connector is for another provider now")
	}
	return held, nil
}

// seal seals what a row is to hold.
func (d *Delegation) seal(u storage.Upstream, held holding) ([]byte, error) {
	if c, known := d.byID[u.Connector]; known {
		held.Source = c.source()
	}
	return d.vault.seal(u, held)
}

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
