package assembly

import (
	"context"
	"fmt"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/keys"
	"github.com/mcp-authd/mcp-authd/internal/notice"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/users"
	"github.com/mcp-authd/mcp-authd/internal/ways"
)

// Admin returns the service that runs administrative operations. notifier notifies users of
// changes.
func (p Parts) Admin(notifier *notice.Notifier) (*admin.Service, error) {
	if err := admin.CheckTwo(p.Config.Console.TwoAdministrators); err != nil {
		return nil, err
	}
	accounts, err := users.New(users.Config{
		Store: p.Store, Notifier: notifier, Providers: p.Config.ProviderIDs(), Audit: p.Audit, Logger: p.Log,
		Links: users.LinkPolicy(p.Config.Login.Links.Policy()),
	})
	if err != nil {
		return nil, err
	}
	return &admin.Service{
		Store:         p.Store,
		Users:         accounts,
		Ways:          p.ways,
		Notifier:      notifier,
		Config:        p.Config,
		Clients:       p.Clients,
		Registry:      p.Registry,
		Keys:          p.claimedKeys,
		Attempts:      p.Attempts(),
		Audit:         p.Audit,
		AuditRequired: p.Config.Audit.Required,
		AuditSigner:   p.AuditSigner,
		AuditChecker:  p.AuditChecker,
		Delegation:    p.Delegation,
		Issuers:       p.Issuers,
		Version:       p.Version,
		Replica:       p.replica,
		Own:           OwnResources(p.Config.Config),
		Operations:    admin.All(),
		Two:           p.Config.Console.TwoAdministrators,
		Ring:          func() (*secrets.Ring, error) { return secrets.NewRing(p.Keys...) },
		FreshFor:      time.Duration(p.Config.Console.Fresh),
		Now:           p.Now,
	}, nil
}

// warnOfAdministration warns of weaknesses of the administration: accounts named like IDs, and
// operations missing from console.two_administrators.
func (p Parts) warnOfAdministration(ctx context.Context, notifier *notice.Notifier) error {
	service, err := p.Admin(notifier)
	if err != nil {
		return err
	}
	found, err := service.NameFindings(ctx)
	if err != nil {
		return err
	}
	for _, f := range found {
		if f.Level != admin.LevelOK {
			p.Log.WarnContext(ctx, f.What, "advice", f.Advice)
		}
	}
	for _, hole := range admin.HolesInTwo(p.Config.Console.TwoAdministrators) {
		p.Log.WarnContext(ctx, hole)
	}
	return nil
}

// ways returns the authentication methods for administration, which never checks a user's code.
func (p Parts) ways() (*ways.Ways, error) {
	site, err := p.Config.Site()
	if err != nil {
		return nil, fmt.Errorf("login.passkeys: %w", err)
	}
	ring, err := secrets.NewRing(p.Keys...)
	if err != nil {
		return nil, err
	}
	return ways.New(ways.Config{
		Store: p.Store, Ring: ring, Site: site, Passwords: p.Config.Login.Local, Providers: p.Config.ProviderIDs(),
		Audit: p.Audit, Logger: p.Log,
	})
}

// claimedKeys is KeyManager for callers that may create a first key, encrypted with the master key.
func (p Parts) claimedKeys(ctx context.Context) (*keys.Manager, error) {
	if err := keys.Claim(ctx, p.Store, p.Keys); err != nil {
		return nil, err
	}
	return p.KeyManager(ctx)
}

// KeyManager returns a manager of the signing keys for commands.
func (p Parts) KeyManager(ctx context.Context) (*keys.Manager, error) {
	return keys.New(ctx, keys.Config{
		Store: p.Store, SecretKeys: p.Keys, Algorithm: p.Config.Tokens.Algorithm,
		PublishAhead: p.Config.Keys.Policy().PublishAhead,
		AccessTTL:    time.Duration(p.Config.Tokens.AccessTTL), Audit: p.Audit, Logger: p.Log,
	})
}
