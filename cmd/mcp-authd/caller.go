package main

import (
	"cmp"
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/installation"
)

// callerCommand completes a command that runs an operation. Its name and description come from the
// operation. Use holds only the arguments, and each line of Example the text after the name. Long
// describes only flags and terminals.
func callerCommand(
	s std, o admin.Verb, c *cobra.Command, flags func(*cobra.Command),
	run func(*cobra.Command, admin.Caller, []string) error,
) *cobra.Command {
	return callerCommandOn((*installation.Installation).Open, s, o, c, flags, run)
}

// callerCommandOn is callerCommand with an opener that finds or creates the installation.
func callerCommandOn(
	open opener, s std, o admin.Verb, c *cobra.Command, flags func(*cobra.Command),
	run func(*cobra.Command, admin.Caller, []string) error,
) *cobra.Command {
	spec := o.Spec()
	words := strings.Fields(spec.Name)
	c.Use = strings.TrimSpace(words[len(words)-1] + " " + c.Use)
	c.Short = cmp.Or(c.Short, spec.Summary)
	c.Long = strings.Trim(spec.Details+"\n"+c.Long, "\n")
	lines := strings.Split(c.Example, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight("  mcp-authd "+spec.Name+" "+line, " ")
	}
	c.Example = strings.Join(lines, "\n")
	command := commandOn(open, s, c, flags, func(c *cobra.Command, a *app, args []string) error {
		service, err := a.Admin()
		if err != nil {
			return err
		}
		by := &here{Caller: service.Operator(), app: a}
		if err := run(c, by, args); err != nil || !by.changed {
			return err
		}
		return a.followCuts(c.Context())
	})
	if command.Flags().Lookup("yes") != nil {
		command.Long = cmp.Or(command.Long, command.Short+".") +
			"\nAsks for confirmation on a terminal, unless --yes is given."
	}
	elsewhere(s, command, run)
	return command
}

// here runs operations on the database.
type here struct {
	admin.Caller
	app     *app
	changed bool // set after a change, which may leave grants to mark
}

// Call implements [admin.Caller].
func (h *here) Call(ctx context.Context, v admin.Verb, in, out any) error {
	h.changed = h.changed || v.Spec().Changes()
	return h.Caller.Call(ctx, v, in, out)
}

// allUsers returns the accounts whose names contain match, or all for "".
func allUsers(ctx context.Context, by admin.Caller, match string) ([]admin.User, error) {
	return admin.Everything(func(p admin.Paging) (admin.Page[admin.User], error) {
		return admin.UserList.Do(ctx, by, admin.Searched{Match: match, Paging: p})
	})
}

// matchFlag adds the flag for a search text.
func matchFlag(c *cobra.Command, match *string, in string) {
	c.Flags().StringVar(match, "match", "", "only entries with this text in the "+in)
}

// everyone returns the accounts, for completion.
func (a *app) everyone(ctx context.Context) ([]admin.User, error) {
	service, err := a.Admin()
	if err != nil {
		return nil, err
	}
	return allUsers(ctx, service.Operator(), "")
}
