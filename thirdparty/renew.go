package thirdparty

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/thirdparty/internal/provider"
)

// renew renews the tokens and confirms their owner before they are used (OpenID Connect Core
// §12.2), because the provider may have mixed up two accounts.
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
	case err != nil: // the tokens arrived, but the rest of the response is invalid
		return d.postpone(ctx, c, u, err)
	}
	return d.name(ctx, c, u, held, said != nil)
}

// keep stores renewed tokens before any other use, because the refresh token that brought them may
// already be invalid (AS-219). It keeps the session reserved. Tokens without a confirmed owner are
// not given to resource servers, and any replica that reads them continues from there.
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

// name asks for the owner of renewed tokens. If named is set, their ID token has already identified
// the owner, and user info only adds the other claims that rules need.
func (d *Delegation) name(ctx context.Context, c *connector, u storage.Upstream, held holding, named bool) error {
	err := d.identify(ctx, c, u, &held)
	switch {
	case errors.Is(err, errAnother):
		return d.mistaken(ctx, c, u)
	case err == nil || named:
		return d.accept(ctx, c, u, held)
	case errors.Is(err, provider.ErrUnsupported):
		// The provider offers no way to ask. Its renewal confirms the session, but a token without
		// a confirmed owner is not for resource servers.
		held.Renewed.Access = ""
		return d.accept(ctx, c, u, held)
	}
	return d.postpone(ctx, c, u, provider.AboutNew(err))
}

// resume continues after a renewal whose tokens have no confirmed owner yet.
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
		return d.renew(ctx, c, u, held) // the refresh decides
	}
	return d.postpone(ctx, c, u, err)
}

// errAnother means that the tokens belong to another account.
var errAnother = errors.New("the provider renewed with the tokens of another person")

// identify asks the provider for the owner of the renewed tokens, and updates the profile if it is
// the right account.
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

// accept replaces the earlier tokens with the renewed ones.
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

// mistaken ends a session whose renewal returned another account's tokens. It is not an outage: the
// provider has answered, and it is now unknown whose session it has.
func (d *Delegation) mistaken(ctx context.Context, c *connector, u storage.Upstream) error {
	d.health[c.ID].Answered(u.ID)
	d.cfg.Logger.LogAttrs(ctx, slog.LevelWarn, "provider session ended", slog.String("connector", c.ID),
		slog.String("provider_session", u.ID),
		slog.Any("cause", fmt.Errorf("%w: %w", provider.ErrGarbage, errAnother)))
	return d.over(ctx, u, reasonMistaken)
}

// heardAll reports whether p covers every source of the earlier profile.
func heardAll(earlier, p provider.Profile) bool {
	for source := range earlier.Parts {
		if _, ok := p.Parts[source]; !ok {
			return false
		}
	}
	return true
}
