package thirdparty

import (
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/thirdparty/internal/provider"
)

// Type describes a type of connector, for administrators who configure one.
type Type struct {
	ID   string // the value of Connector.Type
	Name string // "Google"
	Icon string
	// Protocol is "OpenID Connect" or "OAuth 2.0".
	Protocol string
	// Needs lists the required settings by their names in the configuration file. Takes lists the
	// optional settings that only some types have.
	Needs, Takes []string
	// Scopes are requested at every sign-in unless configured otherwise.
	Scopes oauth.Scopes
	// Refresh describes how to get refresh tokens. Checks describes how the server learns that a
	// session has ended. FreshLogin describes how the provider authenticates the user again.
	Refresh, Checks, FreshLogin string
	// Guide is the page about the type, below docs/.
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
