package storagetest

import (
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// trusted returns an entry with every rule set.
func (e *env) trusted(id string) storage.TrustEntry {
	no := false
	return storage.TrustEntry{
		ID: id, Kind: storage.TrustWorkload, Issuer: "https://tokens.example", CreatedAt: e.now,
		TrustRules: storage.TrustRules{
			Preset: "github-actions", Parameters: map[string]string{"repository": "o/r"},
			JWKSURL: "https://tokens.example/keys", JWKSFile: "/etc/keys.json", JWKS: `{"keys":[]}`,
			CAFile: "/etc/ca.crt", TokenFile: "/etc/token", Networks: []string{"10.0.0.0/8"},
			AudienceAliases: []string{"mcp"},
			Match: []storage.TrustMatch{
				{Claim: "repository", Equals: "o/r"}, {Claim: "ref", Glob: "refs/heads/*"}, {Expression: "true"},
			},
			Resources: []string{"https://mcp.example/mcp"}, Scopes: oauth.Scopes{"mcp"}, MaxTTL: 10 * time.Minute,
			Subject: "ci:{{.repository}}", CreatePeople: true, EmailDomains: []string{"example.com"},
			SAMLIssuers: []string{"https://saml.example"}, Resubmit: true, RequireJTI: &no, AllowPublic: true,
		},
	}
}

// trustEntries checks the stored trusted issuers (AS-235).
func trustEntries(t *testing.T, e *env) {
	first, second := e.trusted("ci"), e.trusted("cluster")
	first.CreatedAt = e.now.Add(time.Second)
	list := func(want ...storage.TrustEntry) {
		t.Helper()
		got, err := e.s.ListTrust(e.ctx)
		check(t, err)
		same(t, got, want)
	}
	t.Run("AS-235 entries are listed as they were added, oldest first", func(t *testing.T) {
		check(t, e.s.AddTrust(e.ctx, first))
		check(t, e.s.AddTrust(e.ctx, second))
		wantErr(t, e.s.AddTrust(e.ctx, storage.TrustEntry{ID: "ci", Kind: storage.TrustEnterprise}), storage.ErrExists)
		list(second, first)
	})
	t.Run("AS-235 an entry is disabled from the first time on, and enabled again", func(t *testing.T) {
		check(t, e.s.DisableTrust(e.ctx, "ci", e.now.Add(time.Minute)))
		check(t, e.s.DisableTrust(e.ctx, "ci", e.now.Add(time.Hour)))
		disabled := first
		disabled.DisabledAt = e.now.Add(time.Minute)
		list(second, disabled)
		check(t, e.s.EnableTrust(e.ctx, "ci"))
		list(second, first)
		wantErr(t, e.s.EnableTrust(e.ctx, "other"), storage.ErrNotFound)
	})
	t.Run("AS-235 an entry of the configuration is marked as disabled", func(t *testing.T) {
		check(t, e.s.DisableTrust(e.ctx, "configured", e.now))
		mark := storage.TrustEntry{ID: "configured", CreatedAt: e.now, DisabledAt: e.now}
		if !mark.Mark() || first.Mark() {
			t.Error("got an entry for a mark, or a mark for an entry")
		}
		list(second, mark, first)
		wantErr(t, e.s.AddTrust(e.ctx, e.trusted("configured")), storage.ErrExists)
		check(t, e.s.EnableTrust(e.ctx, "configured"))
		list(second, first)
	})
	t.Run("AS-235 a removed entry is gone, and its id is free", func(t *testing.T) {
		check(t, e.s.RemoveTrust(e.ctx, "ci", e.now))
		wantErr(t, e.s.RemoveTrust(e.ctx, "ci", e.now), storage.ErrNotFound)
		list(second)
		check(t, e.s.AddTrust(e.ctx, first))
		list(second, first)
	})
}

// raceTrust: of concurrent entries with one id, one is stored.
func raceTrust(t *testing.T, e *env) {
	var c tally
	compete(func(int) { c.add(e.s.AddTrust(e.ctx, e.trusted("ci")), storage.ErrExists) })
	c.want(t, 1)
}
