package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/admin"
)

// callerCommand completes a command that has an operation carried out: its name and what it says of
// itself are those of the operation. Use has the arguments alone, and each line of Example what follows
// the name.
func callerCommand(
	s std, o admin.Verb, c *cobra.Command, flags func(*cobra.Command),
	run func(*cobra.Command, admin.Caller, []string) error,
) *cobra.Command {
	spec := o.Spec()
	_, verb, _ := strings.Cut(spec.Name, " ")
	c.Use = strings.TrimSpace(verb + " " + c.Use)
	c.Short, c.Long = spec.Summary, spec.Details
	lines := strings.Split(c.Example, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight("  mcp-authd "+spec.Name+" "+line, " ")
	}
	c.Example = strings.Join(lines, "\n")
	return storeCommand(s, c, flags, func(c *cobra.Command, a *app, args []string) error {
		service, err := a.admin()
		if err != nil {
			return err
		}
		return run(c, service.Operator(), args)
	})
}

// admin carries operations out on the store, for commands that do not run the server.
func (a *app) admin() (*admin.Service, error) {
	accounts, err := a.accounts()
	if err != nil {
		return nil, err
	}
	return &admin.Service{
		Store: a.store, Users: accounts, Audit: a.audit, Cut: a.followCuts, FreshFor: admin.FreshFor, Now: time.Now,
	}, nil
}

func allUsers(ctx context.Context, by admin.Caller) ([]admin.User, error) {
	return admin.Everything(func(p admin.Paging) (admin.Page[admin.User], error) {
		return admin.UserList.Do(ctx, by, p)
	})
}

// everyone returns the accounts, for completion.
func (a *app) everyone(ctx context.Context) ([]admin.User, error) {
	service, err := a.admin()
	if err != nil {
		return nil, err
	}
	return allUsers(ctx, service.Operator())
}
