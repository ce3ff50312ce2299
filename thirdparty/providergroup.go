package thirdparty

import (
	"context"
	"errors"
	"fmt"
	"slices"

	claimed "github.com/mcp-authd/mcp-authd/internal/claim"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// groupsClaim is the claim that names a person's groups at a provider.
const groupsClaim = "groups"

// ProviderGroups returns which provider groups make a person a member of one of the groups. A person is in the groups
// that a provider named at the newest live session of their account there, brought up to date as by Check. An
// *oauth.Error with temporarily_unavailable: the server cannot tell now.
func (d *Delegation) ProviderGroups(
	ctx context.Context, userID string, groups []string,
) (out []storage.ProviderGroup, err error) {
	all, err := d.providerGroups(ctx)
	if err != nil {
		return nil, err
	}
	for _, c := range d.connectors {
		var wanted []storage.ProviderGroup
		for _, g := range all {
			if g.Connector == c.ID && slices.Contains(groups, g.Group) {
				wanted = append(wanted, g)
			}
		}
		if len(wanted) == 0 {
			continue
		}
		sessions, err := d.latest(ctx, c, userID, d.confirmed)
		if err != nil {
			return nil, err
		}
		for _, g := range wanted {
			names := func(s session) bool { return slices.Contains(s.groups(), g.Name) }
			if slices.ContainsFunc(sessions, names) {
				out = append(out, g)
			}
		}
	}
	return out, nil
}

// session is a session at a provider, opened.
type session struct {
	storage.Upstream
	holding
}

// groups returns the groups that the provider named last.
func (s session) groups() []string { return claimed.List(s.Profile.Claims, groupsClaim) }

// confirming brings a session up to date. storage.ErrRevoked: it does not stand.
type confirming func(context.Context, *connector, storage.Upstream) (storage.Upstream, error)

// latest returns the newest session of each account that a person has at a provider, brought up to date unless confirm
// is nil. If the newest does not stand, it returns the one before, unless the provider is not asked again about that.
func (d *Delegation) latest(
	ctx context.Context, c *connector, userID string, confirm confirming,
) (out []session, err error) {
	if err := d.settle(ctx); err != nil {
		return nil, err
	}
	stale, err := d.superseded(ctx, c, userID)
	if err != nil {
		return nil, err
	}
	for over := map[string]bool{}; ; {
		all, err := d.cfg.Store.LatestUpstreams(ctx, userID, c.ID)
		if err != nil {
			return nil, fmt.Errorf("thirdparty: sessions of a person: %w", err)
		}
		all = slices.DeleteFunc(all, func(u storage.Upstream) bool { return over[u.ID] || stale(u) })
		out, ended, err := d.openAll(ctx, c, all, confirm)
		if ended == "" {
			return out, err
		}
		over[ended] = true
	}
}

// superseded returns which sessions hold an answer that a later sign-in with the same account has replaced. Elsewhere
// than at a detached connector, the provider is asked again instead.
func (d *Delegation) superseded(
	ctx context.Context, c *connector, userID string,
) (func(storage.Upstream) bool, error) {
	if !c.Detached {
		return func(storage.Upstream) bool { return false }, nil
	}
	accounts, err := d.Identities(ctx, userID)
	if err != nil {
		return nil, err
	}
	return func(u storage.Upstream) bool {
		return !slices.ContainsFunc(accounts, func(i storage.Identity) bool {
			return i.Connector == u.Connector && i.Subject == u.Subject && !u.CreatedAt.Before(i.LastUsedAt)
		})
	}, nil
}

// openAll opens sessions, or returns the id of one that does not stand.
func (d *Delegation) openAll(
	ctx context.Context, c *connector, all []storage.Upstream, confirm confirming,
) (out []session, ended string, err error) {
	for _, u := range all {
		id := u.ID
		if confirm != nil {
			u, err = confirm(ctx, c, u)
		}
		switch {
		case errors.Is(err, storage.ErrRevoked):
			return nil, id, nil
		case err != nil:
			return nil, "", err
		}
		switch held, err := d.open(u); {
		case err == nil:
			out = append(out, session{u, held})
		case errors.Is(err, storage.ErrRevoked): // the connector is for another provider now
		case confirm != nil:
			return nil, "", c.unavailable(err)
		default:
			return nil, "", err
		}
	}
	return out, "", nil
}

// confirmed returns a session as the provider confirmed it within the connector's CheckEvery.
func (d *Delegation) confirmed(ctx context.Context, c *connector, u storage.Upstream) (storage.Upstream, error) {
	if d.lately(c, u) {
		return u, nil
	}
	u, _, err := d.stand(ctx, u.ID, d.lately)
	return u, err
}

// lately reports whether the provider's last confirmation of a session is recent enough.
func (d *Delegation) lately(c *connector, u storage.Upstream) bool {
	return c.Detached || d.now().Sub(u.CheckedAt) < c.CheckEvery
}

// providerGroups returns the provider groups of all connectors, and notes which connectors have any: their groups claim
// is brought up to date at every check.
func (d *Delegation) providerGroups(ctx context.Context) ([]storage.ProviderGroup, error) {
	all, err := d.groups.Load(ctx)
	if err != nil {
		return nil, fmt.Errorf("thirdparty: provider groups: %w", err)
	}
	return all, nil
}

func (d *Delegation) readGroups(ctx context.Context) ([]storage.ProviderGroup, error) {
	all, err := d.cfg.Store.ListProviderGroups(ctx)
	if err != nil {
		return nil, err
	}
	for _, c := range d.connectors {
		of := func(g storage.ProviderGroup) bool { return g.Connector == c.ID }
		c.grouped.Store(slices.ContainsFunc(all, of))
	}
	return all, nil
}
