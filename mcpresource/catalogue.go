package mcpresource

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// MismatchError means that the guard does not match its authorization server. New returns it.
type MismatchError struct {
	Issuers  []string
	Resource string
	// Scope is required at Place, such as `Rules.Tools["delete_*"]`. It is "" if the resource
	// itself is unknown.
	Scope, Place string
	Known        []string // the resource's scopes at the authorization server
}

// Error implements error.
func (e *MismatchError) Error() string {
	who := strings.Join(e.Issuers, ", ")
	if e.Scope == "" {
		return fmt.Sprintf(
			"mcpresource: %s knows no resource %s, so no client could get a token for it: add it there, or correct Resource or Aliases",
			who, e.Resource,
		)
	}
	return fmt.Sprintf(
		"mcpresource: %s has no scope %q, which %s asks for at %s, but %q: no token could ever have it; add it there, or correct the name",
		who, e.Scope, e.Place, e.Resource, e.Known)
}

// checkPatience is the timeout for this check at the start.
const checkPatience = 10 * time.Second

// fits checks the guard's resource and scopes against its authorization server.
func (g *Guard) fits() error {
	c, ok := g.c.Validator.(Catalogue)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), checkPatience)
	defer cancel()
	known, ok, err := c.ResourceScopes(ctx, g.own.resource)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return nil
	case err != nil:
		g.c.Logger.Warn("the scopes of the authorization server could not be compared with the rules", "resource",
			g.own.resource, "error", err)
		return nil
	case !ok:
		return &MismatchError{Issuers: g.c.AuthorizationServers, Resource: g.own.resource}
	}
	for _, a := range g.aliases {
		if _, ok, err := c.ResourceScopes(ctx, a.resource); err == nil && !ok {
			return &MismatchError{Issuers: g.c.AuthorizationServers, Resource: a.resource}
		}
	}
	for _, w := range g.wanted() {
		for _, s := range oauth.Scopes(w.scopes).Without(oauth.Scopes{oauth.OfflineAccess}) {
			if !slices.Contains(known, s) {
				return &MismatchError{
					Issuers: g.c.AuthorizationServers, Resource: g.own.resource, Scope: s, Place: w.place, Known: known,
				}
			}
		}
	}
	return nil
}

// wanted is a set of scopes that a challenge may name.
type wanted struct {
	place  string
	scopes []string
}

func (g *Guard) wanted() []wanted {
	all := []wanted{{"FirstScopes", g.c.FirstScopes}, {"Metadata.ScopesSupported", g.c.Metadata.ScopesSupported}}
	r, ok := g.c.Policy.(*Rules)
	if !ok {
		return all
	}
	all = append([]wanted{{"Rules.Base", r.Base}, {"Rules.Default", r.Default}}, all...)
	for _, t := range []struct {
		name  string
		table map[string][]string
	}{{"Methods", r.Methods}, {"Tools", r.Tools}, {"Prompts", r.Prompts}, {"Resources", r.Resources}} {
		for _, key := range slices.Sorted(maps.Keys(t.table)) {
			all = append(all, wanted{fmt.Sprintf("Rules.%s[%q]", t.name, key), t.table[key]})
		}
	}
	return all
}
