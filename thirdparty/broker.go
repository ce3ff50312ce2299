package thirdparty

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/mcp-authd/mcp-authd/internal/delegation"
	"github.com/mcp-authd/mcp-authd/internal/sentence"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Token returns a provider's token for the user of an MCP token, to a resource server that the
// connector's policy names (RS-202, SP-06). A provider issues one token for all scopes that the
// user granted, so the token may allow more than requested; its scopes list them. Errors are
// *oauth.Error values: see authserver.Broker. The server behind it also records each issued token
// (audit.TokenExchanged).
func (d *Delegation) Token(ctx context.Context, r delegation.TokenRequest) (delegation.Token, error) {
	c, ok := d.byID[r.Provider]
	if !ok {
		return delegation.Token{}, errNoTarget
	}
	want, err := c.brokered(r)
	if err != nil {
		return delegation.Token{}, err
	}
	held, err := d.choose(ctx, c, r, want)
	if err != nil { // return the scopes to ask the user for
		return delegation.Token{Scopes: want}, err
	}
	t := held.Tokens
	kind := t.Type
	if kind == "" {
		kind = "Bearer"
	}
	return delegation.Token{Token: t.Access, Type: kind, Scopes: t.Scopes, ExpiresAt: t.Expires}, nil
}

// OffersTokens reports whether any connector gives tokens to resource servers.
func (d *Delegation) OffersTokens() bool {
	return slices.ContainsFunc(d.connectors, func(c *connector) bool { return len(c.Broker) > 0 })
}

// brokered returns the scopes that a resource server requests, if the policy allows them.
func (c *connector) brokered(r delegation.TokenRequest) (oauth.Scopes, error) {
	var allowed oauth.Scopes
	found := false
	for _, rule := range c.Broker {
		if rule.Resource == r.Resource {
			found, allowed = true, allowed.Union(rule.Scopes)
		}
	}
	switch {
	case !found:
		return nil, errNoTarget
	case len(r.Scopes) == 0:
		return allowed, nil
	case !allowed.Has(r.Scopes...):
		return nil, c.say(oauth.InvalidScope, sayNoScopes)
	}
	return r.Scopes, nil
}

// choose finds a session of the user whose token has the scopes. It tries the session that the MCP
// token depends on first, then the session linked for this purpose.
func (d *Delegation) choose(
	ctx context.Context, c *connector, r delegation.TokenRequest, want oauth.Scopes,
) (holding, error) {
	missing := c.say(oauth.InteractionRequired, sayAllowFirst)
	seen := ""
	for _, prefer := range []string{r.UpstreamID, ""} {
		u, err := d.cfg.Store.UpstreamFor(ctx, r.UserID, c.ID, prefer)
		switch {
		case errors.Is(err, storage.ErrNotFound):
			return holding{}, missing
		case err != nil:
			return holding{}, fmt.Errorf("thirdparty: broker: %w", err)
		case u.ID == seen || !u.Scopes.Has(want...):
			seen = u.ID
			continue
		}
		seen = u.ID
		held, err := d.fresh(ctx, u.ID)
		switch {
		case errors.Is(err, storage.ErrRevoked):
			continue
		case err != nil:
			return holding{}, err
		case held.Renewed != nil && held.Tokens.ExpiredAt(d.now()):
			return holding{}, c.unavailable(errUnnamed)
		case held.Tokens.Access == "" || held.Tokens.ExpiredAt(d.now()) || !held.Tokens.Scopes.Has(want...):
			continue
		}
		return held, nil
	}
	return holding{}, missing
}

// fresh returns the content of a session. It checks the session as before any use and renews a
// token that expires within a minute.
func (d *Delegation) fresh(ctx context.Context, id string) (holding, error) {
	u, c, err := d.stand(ctx, id, func(c *connector, u storage.Upstream) bool {
		held, err := d.open(u)
		if err != nil {
			return true // asking the provider does not help; the error is returned below
		}
		renewable := held.latest().Refresh != "" && expiring(held.Tokens, d.now())
		return !renewable && (c.Detached || d.now().Sub(u.CheckedAt) < c.CheckEvery)
	})
	if err != nil {
		return holding{}, err
	}
	held, err := d.open(u)
	if err != nil {
		return holding{}, c.unopened(err)
	}
	return held, nil
}

// errUnnamed means that the provider has not yet confirmed the owner of new tokens.
var errUnnamed = errors.New("whose the renewed tokens are is not known")

// Messages for programs.
var (
	sayNoScopes   = sentence.New("This resource server may not have a token of {provider} with these scopes.", "")
	sayAllowFirst = sentence.New("The person has to allow this at {provider} first.", "")
)

var errNoTarget = oauth.NewError(oauth.InvalidTarget, "This resource server may not have tokens of this provider.")
