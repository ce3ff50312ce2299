package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/label"
)

func newGroupCommand(s std) *cobra.Command {
	return group("group", "Manage groups of accounts", newGroupAdd(s), newGroupList(s), newGroupShow(s),
		newGroupRemove(s), newGroupDelete(s))
}

// providerFlags name a group at a provider.
type providerFlags struct{ in admin.ProviderMembers }

func (f *providerFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.in.Provider, "provider", "", "with --provider-group: the id of the provider")
	c.Flags().StringVar(&f.in.ProviderGroup, "provider-group", "", "all users that the provider puts in this group")
	c.MarkFlagsRequiredTogether("provider", "provider-group")
}

// who names the people that were put into a group, or taken out of it.
func who(users []string, of admin.ProviderMembers) string {
	if of.Provider != "" {
		people := fmt.Sprintf("the people in the group %q of %s", of.ProviderGroup, of.Provider)
		users = append(slices.Clone(users), people)
	}
	return strings.Join(users, ", ")
}

// size says how many members a group has.
func size(g admin.Group) string {
	out := label.Count(g.Members, "member", "members")
	if n := len(g.ProviderGroups); n > 0 {
		out += " and " + label.Count(n, "provider group", "provider groups")
	}
	return out
}

func newGroupAdd(s std) *cobra.Command {
	var out answering
	var f providerFlags
	var in admin.GroupMembers
	return callerCommand(s, admin.GroupAdd, &cobra.Command{
		Use: "NAME [USER...]", Args: cobra.MinimumNArgs(1),
		Example: "editors bob carol\nreaders --description \"may read everything\"\n" +
			"staff --provider okta --provider-group engineering",
	}, func(c *cobra.Command) {
		out.add(c)
		f.add(c)
		c.Flags().StringVar(&in.Description, "description", "", "purpose of a new group")
	}, func(c *cobra.Command, by admin.Caller, args []string) error {
		in.Group, in.Users, in.ProviderMembers = args[0], args[1:], f.in
		g, err := admin.GroupAdd.Do(c.Context(), by, in)
		if err != nil {
			return err
		}
		what := "made the"
		if added := who(g.Users, g.ProviderMembers); added != "" {
			what = "added " + added + " to"
			if g.Created {
				what += " the new"
			}
		}
		return out.print(s, g, "%s group %s (%s)", what, g.Name, size(g.Group))
	})
}

func newGroupRemove(s std) *cobra.Command {
	var out answering
	var f providerFlags
	return callerCommand(s, admin.GroupRemove, &cobra.Command{
		Use: "NAME [USER...]", Args: cobra.MinimumNArgs(1),
		Example: "editors bob\nstaff --provider okta --provider-group engineering",
	}, func(c *cobra.Command) {
		out.add(c)
		f.add(c)
	}, func(c *cobra.Command, by admin.Caller, args []string) error {
		in := admin.GroupLeavers{Group: args[0], Users: args[1:], ProviderMembers: f.in}
		g, err := admin.GroupRemove.Do(c.Context(), by, in)
		if err != nil {
			return err
		}
		taken := who(g.Users, g.ProviderMembers)
		return out.print(s, g, "took %s out of group %s (%s left)", taken, g.Name, size(g.Group))
	})
}

func newGroupDelete(s std) *cobra.Command {
	var out answering
	var sure confirmation
	return callerCommand(s, admin.GroupDelete, &cobra.Command{
		Use: "NAME", Args: cobra.ExactArgs(1), Example: "editors\neditors --yes",
	}, func(c *cobra.Command) {
		out.add(c)
		sure.add(c)
	}, func(c *cobra.Command, by admin.Caller, args []string) error {
		if err := sure.ask(s, "This deletes the group "+args[0]+". Its members stay accounts."); err != nil {
			return err
		}
		g, err := admin.GroupDelete.Do(c.Context(), by, admin.GroupName{Name: args[0]})
		if err != nil {
			return err
		}
		return out.print(s, g, "deleted group %s", g.Name)
	})
}

func newGroupList(s std) *cobra.Command {
	var asJSON bool
	return callerCommand(s, admin.GroupList, &cobra.Command{Args: cobra.NoArgs, Example: "\n--json"},
		func(c *cobra.Command) { c.Flags().BoolVar(&asJSON, "json", false, "print JSON") },
		func(c *cobra.Command, by admin.Caller, _ []string) error {
			all, err := admin.GroupList.Do(c.Context(), by, admin.None{})
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(s.out, all.Items)
			}
			t := newTable(s.out, "GROUP", "MEMBERS", "PROVIDER GROUPS", "CREATED", "DESCRIPTION")
			for _, g := range all.Items {
				var provided []string
				for _, p := range g.ProviderGroups {
					provided = append(provided, p.String())
				}
				t.row(g.Name, strconv.Itoa(g.Members), strings.Join(provided, ", "), label.Moment(g.CreatedAt),
					g.Description)
			}
			return t.flush()
		})
}

func newGroupShow(s std) *cobra.Command {
	var asJSON bool
	return callerCommand(s, admin.GroupShow, &cobra.Command{
		Use: "NAME", Args: cobra.ExactArgs(1), Example: "editors --json",
	}, func(c *cobra.Command) { c.Flags().BoolVar(&asJSON, "json", false, "print JSON") },
		func(c *cobra.Command, by admin.Caller, args []string) error {
			g, err := admin.GroupShow.Do(c.Context(), by, admin.GroupName{Name: args[0]})
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(s.out, g)
			}
			printFields(s.out, "group", g.Name, "description", g.Description, "created", label.Moment(g.CreatedAt))
			for _, u := range g.Users {
				printFields(s.out, "member", u.Name)
			}
			for _, p := range g.ProviderGroups {
				printFields(s.out, "provider group", p.String())
			}
			for _, r := range g.Rules {
				printFields(s.out, "access", r.Resource+": "+r.String())
			}
			return nil
		})
}

func newRuleCommand(s std) *cobra.Command {
	return group("rule", "Manage which users and groups may have which scopes", newRuleSet(s), newRuleList(s),
		newRuleRemove(s))
}

// ruleFlags name a rule.
type ruleFlags struct{ in admin.RuleOf }

func (f *ruleFlags) add(s std, c *cobra.Command) {
	fl := c.Flags()
	fl.StringVar(&f.in.Resource, "resource", "", "URL of the MCP server")
	fl.StringVar(&f.in.User, "user", "", "for this account (name or id)")
	fl.StringVar(&f.in.Group, "group", "", "for the members of this group")
	fl.BoolVar(&f.in.Everyone, "everyone", false, "for all users without another rule")
	c.MarkFlagsMutuallyExclusive("user", "group", "everyone")
	c.MarkFlagsOneRequired("user", "group", "everyone")
	_ = c.MarkFlagRequired("resource")                                                   // the flag exists
	_ = c.RegisterFlagCompletionFunc("user", flagCompletion(s, (*app).userNames))        // the flag exists
	_ = c.RegisterFlagCompletionFunc("resource", flagCompletion(s, (*app).resourceURIs)) // the flag exists
}

func newRuleSet(s std) *cobra.Command {
	var out answering
	var f ruleFlags
	var in admin.NewRule
	return callerCommand(s, admin.RuleSet, &cobra.Command{
		Args: cobra.NoArgs,
		Example: "--user bob --resource https://mcp.example.com/mcp --scopes notes\n" +
			"--group editors --resource https://mcp.example.com/mcp --all\n" +
			"--group contractors --resource https://mcp.example.com/mcp --all --approve pay,delete_*\n" +
			"--everyone --resource https://mcp.example.com/mcp --none",
	}, func(c *cobra.Command) {
		out.add(c)
		f.add(s, c)
		c.Flags().StringSliceVar(&in.Scopes, "scopes", nil, "the scopes that they may have, separated by commas")
		c.Flags().BoolVar(&in.All, "all", false, "they may have every scope, including future ones")
		c.Flags().BoolVar(&in.None, "none", false, "they may not use this MCP server")
		c.Flags().StringSliceVar(&in.Approve, "approve", nil,
			"tools (names or patterns such as delete_*) each call of which they must approve, separated by commas")
		c.MarkFlagsMutuallyExclusive("scopes", "all", "none")
		c.MarkFlagsOneRequired("scopes", "all", "none")
	}, func(c *cobra.Command, by admin.Caller, _ []string) error {
		in.Resource, in.RuleSubject = f.in.Resource, f.in.RuleSubject
		r, err := admin.RuleSet.Do(c.Context(), by, in)
		if err != nil {
			return err
		}
		return out.print(s, r, "%s may have at %s: %s", r.Subject(), r.Resource, r)
	})
}

func newRuleRemove(s std) *cobra.Command {
	var out answering
	var sure confirmation
	var f ruleFlags
	return callerCommand(s, admin.RuleRemove, &cobra.Command{
		Args: cobra.NoArgs, Example: "--user bob --resource https://mcp.example.com/mcp",
	}, func(c *cobra.Command) {
		out.add(c)
		sure.add(c)
		f.add(s, c)
	}, func(c *cobra.Command, by admin.Caller, _ []string) error {
		what := "This removes a rule for " + f.in.Resource + ". Without any rule, everyone may have all its scopes."
		if err := sure.ask(s, what); err != nil {
			return err
		}
		r, err := admin.RuleRemove.Do(c.Context(), by, f.in)
		if err != nil {
			return err
		}
		return out.print(s, r, "removed the rule about %s at %s, which gave %s", r.Subject(), r.Resource, r)
	})
}

func newRuleList(s std) *cobra.Command {
	var asJSON bool
	var in admin.RulesWanted
	return callerCommand(s, admin.RuleList, &cobra.Command{
		Args: cobra.NoArgs, Example: "\n--resource https://mcp.example.com/mcp --json",
	}, func(c *cobra.Command) {
		c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
		c.Flags().StringVar(&in.Resource, "resource", "", "only for this MCP server (URL)")
		c.Flags().StringVar(&in.User, "user", "", "only rules for this account itself (name or id)")
		c.Flags().StringVar(&in.Group, "group", "", "only rules for this group")
	}, func(c *cobra.Command, by admin.Caller, _ []string) error {
		all, err := admin.RuleList.Do(c.Context(), by, in)
		if err != nil {
			return err
		}
		if asJSON {
			return printJSON(s.out, all.Items)
		}
		if len(all.Items) == 0 {
			_, err := fmt.Fprintln(s.err, "there is no such rule; an MCP server without rules is open to everyone")
			return err
		}
		t := newTable(s.out, "MCP SERVER", "WHO", "MAY HAVE", "SET")
		for _, r := range all.Items {
			set := label.Moment(r.SetAt)
			if r.Config {
				set = "configuration"
			}
			t.row(r.Resource, r.Subject(), r.String(), set)
		}
		return t.flush()
	})
}
