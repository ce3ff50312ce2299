package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/label"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// lister lists the completions of a word. Text after a tab describes a completion.
type lister func(*app, context.Context) ([]string, error)

// completing makes shells complete the arguments of a command from the installation that its flags
// select.
func completing(s std, list lister, c *cobra.Command) *cobra.Command {
	c.ValidArgsFunction = completion(s, list)
	return c
}

func completion(s std, list lister) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if c.Args != nil && c.Args(c, append(args, "x")) != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp // no more arguments allowed
		}
		return listed(c, s, list)
	}
}

func flagCompletion(s std, list lister) cobra.CompletionFunc {
	return func(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return listed(c, s, list)
	}
}

func listed(c *cobra.Command, s std, list lister) ([]string, cobra.ShellCompDirective) {
	where := settings{file: c.Flag("config").Value.String(), data: c.Flag("data").Value.String()}
	a, err := where.open(c.Context(), s)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer a.Close()
	out, err := list(a, c.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

func (a *app) userNames(ctx context.Context) (out []string, err error) {
	all, err := a.everyone(ctx)
	for _, u := range all {
		out = append(out, u.Name)
	}
	return out, err
}

func (a *app) clientIDs(ctx context.Context) (out []string, err error) {
	service, err := a.Admin()
	if err != nil {
		return nil, err
	}
	all, err := service.AllClients(ctx)
	for _, c := range all {
		out = append(out, c.ID+"\t"+label.Printable(c.Name))
	}
	return out, err
}

func (a *app) resourceURIs(ctx context.Context) (out []string, err error) {
	all, err := a.resources(ctx)
	for _, r := range all {
		out = append(out, r.URI+"\t"+label.Printable(r.Name))
	}
	return out, err
}

func (a *app) grantIDs(ctx context.Context) (out []string, err error) {
	some, err := a.someGrants(ctx, storage.Selection{})
	names := a.names()
	for _, g := range some.List {
		out = append(out, g.ID+"\t"+label.Printable(names.User(ctx, g.UserID)+", "+names.Client(ctx, g.ClientID)))
	}
	return out, err
}

// names returns the names of accounts and clients by ID.
func (a *app) names() *admin.Names { return (&admin.Service{Store: a.Store}).Names() }
