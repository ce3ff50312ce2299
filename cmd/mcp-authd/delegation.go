package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/authserver"
	"github.com/mcp-authd/mcp-authd/storage"
	"github.com/mcp-authd/mcp-authd/thirdparty"
)

// newDelegation wires sign-in at upstream providers, also when none is configured: the
// vault is there all the same.
func (a *app) newDelegation() (*thirdparty.Delegation, error) {
	d, err := thirdparty.New(thirdparty.Config{
		Now:    a.now,
		Issuer: a.config.Issuer, Store: a.store, SecretKeys: a.keys, Connectors: a.config.Connectors(), Logger: a.log, Audit: a.audit,
	})
	if err != nil {
		return nil, fmt.Errorf("thirdparty: %w", err)
	}
	return d, nil
}

// delegate has the authorization server sign people in at the configured providers. Without
// one, grants that rest on one are not honoured.
func (a *app) delegate(cfg *authserver.Config) error {
	if len(a.config.ThirdParty) == 0 {
		return nil
	}
	d, err := a.newDelegation()
	if err != nil {
		return err
	}
	a.delegation = d
	cfg.Delegation, cfg.NoLocalLogin, cfg.DefaultProvider = d, !a.config.Login.Local, a.config.Login.DefaultProvider
	for _, c := range a.config.ThirdParty {
		if c.Detached {
			a.log.Warn("thirdparty: detached: sign-ins do not end with the session at the provider", slog.String("connector", c.ID))
		}
	}
	return nil
}

// runDelegation checks provider sessions until ctx ends. The function that it returns
// waits for what is under way: a rotated refresh token that is on its way to us exists
// nowhere else.
func (a *app) runDelegation(ctx context.Context) (settle func()) {
	if a.delegation == nil {
		return func() {}
	}
	done := make(chan struct{})
	go a.examineProviders(ctx)
	go func() {
		defer close(done)
		if err := a.delegation.Run(ctx); err != nil {
			a.log.Error("provider sessions are not checked any more", "error", err)
		}
	}()
	return func() {
		<-done
		a.delegation.Close()
	}
}

// examineProviders looks at each provider once, as doctor does, and says in the log what
// would keep people from signing in there.
func (a *app) examineProviders(ctx context.Context) {
	for _, r := range a.delegation.Probe(ctx) {
		for _, f := range r.Findings {
			if f.Verdict == thirdparty.Problem && ctx.Err() == nil {
				a.log.Warn("people cannot sign in at a provider", slog.String("connector", r.Connector), slog.String("problem", f.What), slog.String("advice", f.Advice))
			}
		}
	}
}

func newUserIdentities(s std) *cobra.Command {
	var asJSON bool
	return storeCommand(s, &cobra.Command{
		Use: "identities NAME", Short: "List the accounts at providers that an account is tied to", Args: cobra.ExactArgs(1),
		Example: "  mcp-authd user identities ada@github --json",
	}, func(c *cobra.Command) { c.Flags().BoolVar(&asJSON, "json", false, "print JSON") },
		func(c *cobra.Command, a *app, args []string) error {
			u, err := a.person(c.Context(), args[0])
			if err != nil {
				return err
			}
			all, err := a.store.Identities(c.Context(), u.ID)
			if err != nil {
				return err
			}
			return printIdentities(s, all, asJSON)
		})
}

// identityView is an account at a provider as commands show it.
type identityView struct {
	Connector  string    `json:"connector"`
	Subject    string    `json:"subject"`
	Label      string    `json:"label,omitempty"`
	CreatedAt  time.Time `json:"created_at"`
	LastUsedAt time.Time `json:"last_used_at,omitzero"`
}

func printIdentities(s std, all []storage.Identity, asJSON bool) error {
	views := make([]identityView, 0, len(all))
	for _, i := range all {
		views = append(views, identityView{i.Connector, i.Subject, i.Label, i.CreatedAt, i.LastUsedAt})
	}
	if asJSON {
		return printJSON(s.out, views)
	}
	t := newTable(s.out, "CONNECTOR", "ACCOUNT", "SUBJECT", "SINCE", "LAST SIGN-IN")
	for _, v := range views {
		t.row(v.Connector, v.Label, v.Subject, moment(v.CreatedAt), moment(v.LastUsedAt))
	}
	return t.flush()
}

// foundations finds what grants rest on.
type foundations struct {
	store storage.Upstreams
	known map[string]string
}

// of returns the connector whose session a grant rests on: "" for none.
func (f *foundations) of(ctx context.Context, g storage.Grant) (string, error) {
	if g.UpstreamID == "" {
		return "", nil
	}
	if p, ok := f.known[g.UpstreamID]; ok {
		return p, nil
	}
	u, err := f.store.Upstream(ctx, g.UpstreamID)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return "", err
	}
	f.known[g.UpstreamID] = u.Connector
	return u.Connector, nil
}
