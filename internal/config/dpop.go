package config

import (
	"fmt"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// DPoP configures tokens that are bound to a key of the client (RFC 9449).
type DPoP struct {
	// Nonce is off or required. If required, proofs must contain a nonce from this server, at the
	// token endpoint and at the MCP servers behind the gateway.
	Nonce string `yaml:"nonce"`
	// Proofs says where used proofs are remembered: memory, database or auto. auto is the database
	// with PostgreSQL, which may serve several replicas, and otherwise memory.
	Proofs string `yaml:"proofs"`
}

func defaultDPoP() DPoP { return DPoP{Nonce: "off", Proofs: "auto"} }

// Nonces reports whether proofs must contain a nonce.
func (d DPoP) Nonces() bool { return d.Nonce == "required" }

// SharedProofs reports whether used proofs are remembered in the database.
func (c *Config) SharedProofs() bool {
	return c.DPoP.Proofs == "database" || c.DPoP.Proofs == "auto" && c.Postgres()
}

// dpop returns the store's value for optional, required, or "" (the default).
func dpop(value string) storage.DPoP {
	if value == "required" {
		return storage.DPoPRequired
	}
	return storage.DPoPOptional
}

func (c *Config) validateDPoP(oneOf func(key, value string, allowed ...string)) {
	oneOf("dpop.nonce", c.DPoP.Nonce, "off", "required")
	oneOf("dpop.proofs", c.DPoP.Proofs, "auto", "memory", "database")
	for i, r := range c.Resources {
		oneOf(fmt.Sprintf("resources[%d].dpop", i), r.DPoP, "", "optional", "required")
	}
}

// StorageResources returns the configured resources as records.
func (c *Config) StorageResources() []storage.Resource {
	var out []storage.Resource
	for _, r := range c.Resources {
		out = append(out, storage.Resource{
			URI: r.URI, Name: r.Name, Aliases: r.Aliases, Scopes: r.Scopes, Config: true, DPoP: dpop(r.DPoP),
		})
	}
	return out
}
