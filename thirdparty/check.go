package thirdparty

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/thirdparty/internal/provider"
)

const (
	// patience is how long a request waits for an answer that another replica fetches.
	patience = 10 * time.Second
	// storeTimeout bounds a write that continues after its request has ended.
	storeTimeout = 10 * time.Second
)

// Check asks the provider whether a session is still valid, unless the provider confirmed it within
// maxAge. A maxAge of zero means the connector's CheckEvery (AS-218). Check returns
// storage.ErrRevoked if the session and its grants have ended or its provider is not configured. It
// returns an *oauth.Error with temporarily_unavailable if the state is currently unknown.
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

// Permit returns which of the scopes of a resource the user may have, according to the last claims
// from the provider. For administrators it also names the rules that withhold the other scopes. It
// returns storage.ErrRevoked as Check does.
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

// unopened returns the error for a row that cannot be opened.
func (c *connector) unopened(err error) error {
	if errors.Is(err, storage.ErrRevoked) {
		return err
	}
	return c.unavailable(err)
}

// live returns an active session and its connector.
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

// stand returns a session as soon as enough accepts it, or after this or a concurrent call has
// asked the provider.
func (d *Delegation) stand(
	ctx context.Context, id string, enough func(*connector, storage.Upstream) bool,
) (storage.Upstream, *connector, error) {
	var awaited int64 // the version that another replica has claimed
	pause := 25 * time.Millisecond
	for began := time.Now(); ; pause = min(2*pause, time.Second/2) {
		u, c, err := d.live(ctx, id)
		if err != nil {
			return u, c, err
		}
		if enough(c, u) {
			return u, c, nil
		}
		// The other replica stored an insufficient answer and postponed the session.
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

// judge decides without the provider. The last confirmation counts for the connector's Outage;
// after that the state is unknown. An outage never ends a session.
func (d *Delegation) judge(c *connector, u storage.Upstream, cause error) error {
	if d.now().Sub(u.CheckedAt) < c.Outage {
		return nil
	}
	return c.unavailable(cause)
}

// unavailable returns the protocol error for a state that is currently unknown.
func (c *connector) unavailable(cause error) *oauth.Error {
	e := c.say(oauth.TemporarilyUnavailable, sayUnknown)
	e.RetryAfter = retryAfter
	return e.Because(cause)
}

// open opens the content of a row. It returns storage.ErrRevoked if the tokens came from another
// provider than the connector's current one.
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

// seal seals the content of a row.
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
