package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/internal/label"
	"github.com/mcp-authd/mcp-authd/internal/users"
)

func newUserInvite(s std) *cobra.Command {
	var in admin.Invitation
	var role roleFlags
	var ttl lifetime
	var asJSON bool
	return callerCommand(s, admin.UserInvite, &cobra.Command{
		Use: "NAME", Args: cobra.ExactArgs(1), Example: "alice\nbob --mail bob@example.com --ttl 7d\ncarol --group editors",
	}, func(c *cobra.Command) {
		role.add(c)
		c.Flags().StringVar(&in.Mail, "mail", "", "mail address of the user")
		c.Flags().StringSliceVar(&in.Groups, "group", nil, "add the new account to this group; repeat for more")
		c.Flags().Var(&ttl, "ttl", "lifetime of the link (default: login.links.invite_ttl)")
		c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	}, func(c *cobra.Command, by admin.Caller, args []string) (err error) {
		in.Name, in.Role = args[0], string(role.role)
		if in.TTL, err = ttl.within(c, users.MaxInviteTTL); err != nil {
			return err
		}
		made, err := admin.UserInvite.Do(c.Context(), by, in)
		if err != nil {
			return err
		}
		return printLink(s, made, in.Name, asJSON)
	})
}

func newUserRecover(s std) *cobra.Command {
	var in admin.Recovery
	var ttl lifetime
	var asJSON bool
	return callerCommand(s, admin.UserRecover, &cobra.Command{
		Use: "NAME", Args: cobra.ExactArgs(1), Example: "alice\nalice --now",
	}, func(c *cobra.Command) {
		c.Flags().BoolVar(&in.Now, "now", false, "refuse if the link would have to wait")
		c.Flags().Var(&ttl, "ttl",
			"lifetime of the link, from the time that it starts to work (default: login.links.recover_ttl)")
		c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	}, func(c *cobra.Command, by admin.Caller, args []string) (err error) {
		in.Name = args[0]
		if in.TTL, err = ttl.within(c, users.MaxRecoverTTL); err != nil {
			return err
		}
		made, err := admin.UserRecover.Do(c.Context(), by, in)
		if err != nil {
			return err
		}
		return printLink(s, made, in.Name, asJSON)
	})
}

// lifetime is a flag with a duration in the syntax of the configuration, which permits days.
type lifetime time.Duration

// String implements pflag.Value. Help shows no empty default.
func (l *lifetime) String() string {
	if *l == 0 {
		return ""
	}
	return config.Duration(*l).String()
}

// Set implements pflag.Value.
func (l *lifetime) Set(s string) error { return (*config.Duration)(l).UnmarshalText([]byte(s)) }

// Type implements pflag.Value.
func (l *lifetime) Type() string { return "duration" }

// within returns the text of the flag, or "" if it was not given. It returns an error if the value
// is out of range.
func (l *lifetime) within(c *cobra.Command, most time.Duration) (string, error) {
	if !c.Flags().Changed("ttl") {
		return "", nil
	}
	if ttl := time.Duration(*l); ttl < users.MinLinkTTL || ttl > most {
		return "", fmt.Errorf("--ttl is not between 1m and %s", config.Duration(most))
	}
	return l.String(), nil
}

// printLink prints a link, including one that could not be sent.
func printLink(s std, l admin.Link, name string, asJSON bool) error {
	if l.Warning != "" {
		fmt.Fprintln(s.err, "mcp-authd:", label.Printable(l.Warning))
		l.Warning = ""
	}
	if asJSON {
		return printJSON(s.out, l)
	}
	if l.Mail != "" {
		fmt.Fprintf(s.err, "sent to %s\n", l.Mail)
	}
	if l.NotBefore.After(time.Now()) {
		fmt.Fprintf(s.err, "the person has other ways in: it is good from %s, and the person can stop it\n",
			label.Moment(l.NotBefore))
	}
	fmt.Fprintf(s.err, "good until %s, once; give it to %s alone:\n", label.Moment(l.ExpiresAt), name)
	_, err := fmt.Fprintln(s.out, l.URL)
	return err
}

func newUserLinks(s std) *cobra.Command {
	var asJSON bool
	list := callerCommand(s, admin.UserLinks, &cobra.Command{
		Use: "[NAME]", Args: cobra.MaximumNArgs(1), Example: "\nalice --json\nwithdraw alice",
	}, func(c *cobra.Command) { c.Flags().BoolVar(&asJSON, "json", false, "print JSON") },
		func(c *cobra.Command, by admin.Caller, args []string) error {
			name := ""
			if len(args) > 0 {
				name = args[0]
			}
			all, err := admin.Everything(func(p admin.Paging) (admin.Page[admin.OpenLink], error) {
				return admin.UserLinks.Do(c.Context(), by, admin.OpenLinks{Paging: p, Name: name})
			})
			if err != nil {
				return err
			}
			slices.SortFunc(all, func(a, b admin.OpenLink) int { return a.CreatedAt.Compare(b.CreatedAt) })
			return printOpenLinks(s, all, asJSON)
		})
	list.AddCommand(newUserLinksWithdraw(s))
	return list
}

func printOpenLinks(s std, all []admin.OpenLink, asJSON bool) error {
	if asJSON {
		return printJSON(s.out, all)
	}
	t := newTable(s.out, "KIND", "NAME", "MAIL", "MADE", "FROM", "UNTIL")
	for _, v := range all {
		t.row(v.Kind, v.Name, v.Mail, label.Moment(v.CreatedAt), label.Moment(v.NotBefore), label.Moment(v.ExpiresAt))
	}
	return t.flush()
}

func newUserLinksWithdraw(s std) *cobra.Command {
	var sure confirmation
	var out answering
	return callerCommand(s, admin.UserLinksWithdraw, &cobra.Command{
		Use: "NAME", Args: cobra.ExactArgs(1), Example: "alice",
	}, flags(sure.add, out.add), func(c *cobra.Command, by admin.Caller, args []string) error {
		if err := sure.ask(s, "This ends every open link of "+args[0]+"."); err != nil {
			return err
		}
		ended, err := admin.UserLinksWithdraw.Do(c.Context(), by, admin.UserName{Name: args[0]})
		if err != nil {
			return err
		}
		return out.print(s, ended, "withdrew the links of %s", args[0])
	})
}
