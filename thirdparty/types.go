package thirdparty

import (
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/thirdparty/internal/provider"
)

// Type describes a type of connector, for people who configure one.
type Type struct {
	ID   string // what Connector.Type is
	Name string // "Google"
	Icon string
	// Protocol is "OpenID Connect" or "OAuth 2.0".
	Protocol string
	// Needs are the settings that have to be given, by their names in the configuration
	// file; Takes are those that only some types have, and that may be given.
	Needs, Takes []string
	// Scopes are asked for at every sign-in, unless the configuration says otherwise.
	Scopes oauth.Scopes
	// Refresh says how we come by refresh tokens, Checks how we learn that a session there
	// has ended, FreshLogin what makes the provider ask for proof again.
	Refresh, Checks, FreshLogin string
	// Guide is the page about it, below docs/.
	Guide string
}

// Types returns all types of connectors, the generic ones first.
func Types() []Type {
	known := provider.Types()
	out := make([]Type, len(known))
	for i, t := range known {
		out[i] = Type(t)
	}
	return out
}
