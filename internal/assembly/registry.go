package assembly

import (
	"errors"
	"fmt"

	"github.com/mcp-authd/mcp-authd/dcr"
	"github.com/mcp-authd/mcp-authd/internal/metrics"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Registry returns the client registry. A server attaches itself to it.
func (p Parts) Registry() (*dcr.Registry, error) {
	r := p.Config.Registration
	schemes := r.PrivateUseSchemes
	if schemes == nil {
		schemes = []string{} // empty differs from the default
	}
	if r.InsecureLoopbackDocuments {
		p.Log.Warn("registration.insecure_loopback_documents is on: client metadata documents are fetched from this machine")
	}
	if r.MachineClients {
		p.Log.Warn("registration.machine_clients is on: anyone who can reach this server can get tokens without a person")
	}
	clients, err := p.Clients()
	if err != nil {
		return nil, err
	}
	cfg := dcr.Config{
		Store: p.Store, Holds: p.Store, SecretKeys: p.Keys, Disabled: !r.Enabled, Now: p.Now,
		Redirects: oauth.RedirectPolicy{PrivateUseSchemes: schemes, DottedSchemes: r.DottedSchemes}, Clients: clients,
		Limits: r.Limits(), Documents: r.Documents(), MachineClients: r.MachineClients, Audit: p.Audit, Logger: p.Log,
		DocumentAsked: func(hit bool) { p.Metrics.Cache(metrics.CacheDocuments, hit) },
	}
	if p.Config.Limits.Shared() {
		cfg.Allowances = p.Store
	}
	return dcr.New(cfg)
}

// Clients returns the configured clients.
func (p Parts) Clients() (out []storage.Client, err error) {
	for i, c := range p.Config.Clients {
		if c.AuthMethod == "" && c.Secret != "" {
			c.AuthMethod = "client_secret_basic" // RFC 7591 §2
		}
		client, _, err := MintClient(dcr.Spec{
			ID: c.ID, Name: c.Name, RedirectURIs: c.RedirectURIs, GrantTypes: c.GrantTypes, AuthMethod: c.AuthMethod,
			JWKS: []byte(c.JWKS), JWKSURI: c.JWKSURI, Scopes: c.Scopes, Resources: c.Resources,
			RequirePAR: c.RequirePAR, DPoP: c.DPoP == "required",
			Redirects: p.Config.RedirectPolicy(), Now: p.Now(),
		}, string(c.Secret))
		switch {
		case err != nil:
			return nil, fmt.Errorf("clients[%d]: %w", i, err)
		case client.HasSecret() && c.Secret == "":
			return nil, fmt.Errorf("clients[%d]: %s needs a secret", i, client.AuthMethod)
		}
		client.Source = storage.SourceConfig
		out = append(out, client)
	}
	return out, nil
}

// MintClient builds a client for an administrator. A given secret replaces the random one, and must
// be as hard to guess.
func MintClient(spec dcr.Spec, secret string) (storage.Client, string, error) {
	client, random, err := dcr.Mint(spec)
	switch {
	case err != nil || secret == "":
		return client, random, err
	case client.Public():
		return client, "", errors.New("a client with the authentication method none must not have a secret")
	case len(secret) < secrets.KeySize:
		return client, "",
			fmt.Errorf("a client secret must have at least %d characters; make one with: openssl rand -base64 32",
				secrets.KeySize)
	}
	h := storage.Hash(secrets.Hash(secret))
	client.SecretHash = &h
	return client, secret, nil
}
