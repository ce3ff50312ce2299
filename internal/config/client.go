package config

import (
	"fmt"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// Client is a configured OAuth client.
type Client struct {
	ID           string   `yaml:"id"`
	Name         string   `yaml:"name"`
	Secret       Secret   `yaml:"secret"`
	JWKS         string   `yaml:"jwks"`     // public keys for private_key_jwt, as JSON
	JWKSURI      string   `yaml:"jwks_uri"` // or the URL that publishes them
	RedirectURIs []string `yaml:"redirect_uris"`
	GrantTypes   []string `yaml:"grant_types"`
	AuthMethod   string   `yaml:"auth_method"`
	Scopes       []string `yaml:"scopes"`
	Resources    []string `yaml:"resources"`
	RequirePAR   bool     `yaml:"require_par"` // its authorization requests must be pushed (RFC 9126)
	DPoP         string   `yaml:"dpop"`        // optional or required: all its tokens are bound to a key
}

func (c *Config) validateClients(
	add func(key, format string, args ...any), oneOf func(key, value string, allowed ...string),
) {
	ids := map[string]bool{}
	for i, cl := range c.Clients {
		at := fmt.Sprintf("clients[%d].", i)
		switch {
		case cl.ID == "":
			add(at+"id", "is missing")
		case ids[cl.ID]:
			add(at+"id", "%q is listed twice", cl.ID)
		}
		ids[cl.ID] = true
		oneOf(at+"auth_method", cl.AuthMethod,
			"", "none", "client_secret_basic", "client_secret_post", oauth.PrivateKeyJWT)
		oneOf(at+"dpop", cl.DPoP, "", "optional", "required")
	}
}
