package thirdparty

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/mcp-authd/mcp-authd/storage"
	"github.com/mcp-authd/mcp-authd/thirdparty/internal/provider"
)

// renew renews the tokens, and learns whose the new ones are before they count for
// anything (OpenID Connect Core §12.2): the provider may have mixed up two people.
func (d *Delegation) renew(ctx context.Context, c *connector, u storage.Upstream, held holding) error {
	limited, cancel := context.WithTimeout(ctx, questionTTL)
	t, said, err := c.Refresh(limited, held.latest())
	cancel()
	switch {
	case errors.Is(err, provider.ErrDenied):
		d.health[c.ID].Answered(u.ID)
		return d.denied(ctx, c, u, held)
	case err != nil && t.Access == "":
		return d.postpone(ctx, c, u, err)
	case said != nil && said.Subject != u.Subject:
		d.giveBack(ctx, c, t)
		return d.mistaken(ctx, c, u)
	}
	held.Renewed = &t
	if said != nil {
		complete := heardAll(held.Profile, *said)
		held.Profile = said.Over(held.Profile)
		if complete {
			return d.accept(ctx, c, u, held)
		}
	}
	u, kept := d.keep(ctx, u, held)
	switch {
	case kept != nil:
		if errors.Is(kept, storage.ErrRevoked) {
			d.giveBack(ctx, c, t)
		}
		return kept
	case err != nil: // the tokens came, but what came with them is not good
		return d.postpone(ctx, c, u, err)
	}
	return d.name(ctx, c, u, held, said != nil)
}

// keep stores renewed tokens before anything else is done with them, for the refresh token
// that brought them may be worth nothing by now (AS-219), and goes on holding the session.
// Tokens without a known owner go to no resource server meanwhile: whichever replica finds
// them goes on from there.
func (d *Delegation) keep(ctx context.Context, u storage.Upstream, held holding) (storage.Upstream, error) {
	sealed, err := d.seal(u, held)
	if err != nil {
		return u, err
	}
	u.Sealed, u.DueAt = sealed, d.now()
	if err := d.save(ctx, u); err != nil {
		return u, err
	}
	u.Version++
	return u, d.take(ctx, u)
}

// name asks whose the tokens are that were just renewed. named: an ID token that came with
// them has said so, and user info only brings the rest of what rules look at.
func (d *Delegation) name(ctx context.Context, c *connector, u storage.Upstream, held holding, named bool) error {
	err := d.identify(ctx, c, u, &held)
	switch {
	case errors.Is(err, errAnother):
		return d.mistaken(ctx, c, u)
	case err == nil || named:
		return d.accept(ctx, c, u, held)
	case errors.Is(err, provider.ErrUnsupported):
		// The provider offers no way to ask. That it renews says that its session stands; a
		// token without a known owner is not for resource servers.
		held.Renewed.Access = ""
		return d.accept(ctx, c, u, held)
	}
	return d.postpone(ctx, c, u, provider.AboutNew(err))
}

// resume goes on from a renewal after which the owner of the tokens was not known.
func (d *Delegation) resume(ctx context.Context, c *connector, u storage.Upstream, held holding) error {
	if held.Renewed.ExpiredAt(d.now()) {
		return d.renew(ctx, c, u, held)
	}
	err := d.identify(ctx, c, u, &held)
	switch {
	case err == nil:
		return d.accept(ctx, c, u, held)
	case errors.Is(err, errAnother):
		return d.mistaken(ctx, c, u)
	case errors.Is(err, provider.ErrDenied), errors.Is(err, provider.ErrUnsupported):
		return d.renew(ctx, c, u, held) // which has the last word
	}
	return d.postpone(ctx, c, u, err)
}

// errAnother: the tokens are another person's.
var errAnother = errors.New("the provider renewed with the tokens of another person")

// identify asks the provider whose the renewed tokens are, and brings the profile up to
// date if they are the person's.
func (d *Delegation) identify(ctx context.Context, c *connector, u storage.Upstream, held *holding) error {
	limited, cancel := context.WithTimeout(ctx, questionTTL)
	p, err := c.Owner(limited, *held.Renewed)
	cancel()
	switch {
	case err != nil:
		return err
	case p.Subject != u.Subject:
		return errAnother
	}
	held.Profile = p.Over(held.Profile)
	return nil
}

// accept puts the renewed tokens in the place of the earlier ones.
func (d *Delegation) accept(ctx context.Context, c *connector, u storage.Upstream, held holding) error {
	t := *held.Renewed
	held.Tokens, held.Renewed = t, nil
	d.health[c.ID].Answered(u.ID)
	err := d.confirm(ctx, c, u, held, nil)
	if errors.Is(err, storage.ErrRevoked) {
		d.giveBack(ctx, c, t)
	}
	return err
}

// mistaken ends a session whose renewal brought tokens of another person. It is no outage:
// the provider has answered, and we cannot tell any more whose session it has there.
func (d *Delegation) mistaken(ctx context.Context, c *connector, u storage.Upstream) error {
	d.health[c.ID].Answered(u.ID)
	d.cfg.Logger.LogAttrs(ctx, slog.LevelWarn, "provider session ended", slog.String("connector", c.ID),
		slog.String("provider_session", u.ID),
		slog.Any("cause", fmt.Errorf("%w: %w", provider.ErrGarbage, errAnother)))
	return d.over(ctx, u, reasonMistaken)
}

// heardAll reports whether p comes from every source that the earlier profile came from.
func heardAll(earlier, p provider.Profile) bool {
	for source := range earlier.Parts {
		if _, ok := p.Parts[source]; !ok {
			return false
		}
	}
	return true
}
