package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/installation"
	"github.com/mcp-authd/mcp-authd/internal/label"
)

func newUserCommand(s std) *cobra.Command {
	named := func(c *cobra.Command) *cobra.Command { return completing(s, (*app).userNames, c) }
	return group("user", "Manage local accounts",
		newUserAdd(s), newUserList(s), named(newUserShow(s)), named(newUserIdentities(s)), named(newUserWays(s)),
		named(newUserGroups(s)),
		named(newUserPasswd(s)),
		named(newUserChange(s, "disabled", admin.UserDisable)), named(newUserChange(s, "enabled", admin.UserEnable)),
		named(newUserDelete(s)), named(newUserSetMail(s)), named(newUserSetRole(s)), newUserInvite(s),
		named(newUserRecover(s)), named(newUserLinks(s)), named(newUserSessions(s)),
	)
}

func newUserChange(s std, done string, change admin.Operation[admin.UserName, admin.User]) *cobra.Command {
	var sure confirmation
	var out answering
	ends := change.Spec().Name == admin.UserDisable.Spec().Name
	return callerCommand(s, change, &cobra.Command{Use: "NAME", Example: "alice", Args: cobra.ExactArgs(1)},
		func(c *cobra.Command) {
			out.add(c)
			if ends {
				sure.add(c)
			}
		},
		func(c *cobra.Command, by admin.Caller, args []string) error {
			if ends {
				if err := sure.ask(s, "This ends the sessions and grants of "+args[0]+"."); err != nil {
					return err
				}
			}
			u, err := change.Do(c.Context(), by, admin.UserName{Name: args[0]})
			if err != nil {
				return err
			}
			return out.print(s, u, "%s %s", done, args[0])
		})
}

func newUserDelete(s std) *cobra.Command {
	var sure confirmation
	var out answering
	return callerCommand(s, admin.UserDelete, &cobra.Command{
		Use: "NAME", SuggestFor: []string{"remove", "rm"}, Args: cobra.ExactArgs(1), Example: "alice\nalice --yes",
	}, flags(sure.add, out.add), func(c *cobra.Command, by admin.Caller, args []string) error {
		found, err := admin.GrantCounted.Do(c.Context(), by, admin.Which{User: args[0]})
		if err != nil {
			return err
		}
		if err := sure.ask(s, fmt.Sprintf("This removes the account %s for good, with its sign-ins and %s.",
			found.UserName, toApplications(found.GrantCount))); err != nil {
			return err
		}
		deleted, err := admin.UserDelete.Do(c.Context(), by, admin.UserName{Name: found.User})
		if err != nil {
			return err
		}
		return out.print(s, deleted, "deleted %s; ended: %s", deleted.Name, toApplications(deleted.Ended))
	})
}

func newUserAdd(s std) *cobra.Command {
	var in admin.NewUser
	var role roleFlags
	var fromStdin, asJSON bool
	return callerCommandOn((*installation.Installation).OpenOrCreate, s, admin.UserAdd, &cobra.Command{
		Use: "NAME", Args: cobra.ExactArgs(1), Example: "alice\nalice --password-stdin <password.txt\ncarol --role auditor",
	}, func(c *cobra.Command) {
		c.Flags().BoolVar(&fromStdin, "password-stdin", false, "read the password from standard input")
		role.add(c)
		c.Flags().StringVar(&in.Mail, "mail", "", "mail address of the user")
		c.Flags().BoolVar(&asJSON, "json", false, "print the account as JSON")
	}, func(c *cobra.Command, by admin.Caller, args []string) (err error) {
		in.Name, in.Role = args[0], string(role.role)
		if in.Password, err = readPassword(s, fromStdin); err != nil {
			return err
		}
		created, err := admin.UserAdd.Do(c.Context(), by, in)
		if err != nil {
			return err
		}
		if asJSON {
			return printJSON(s.out, created)
		}
		_, err = fmt.Fprintf(s.out, "created %s (%s)\n", created.Name, created.ID)
		return err
	})
}

func newUserPasswd(s std) *cobra.Command {
	var in admin.NewPassword
	var fromStdin bool
	var out answering
	return callerCommand(s, admin.UserPasswd, &cobra.Command{Use: "NAME", Args: cobra.ExactArgs(1), Example: "alice"},
		func(c *cobra.Command) {
			c.Flags().BoolVar(&fromStdin, "password-stdin", false, "read the password from standard input")
			out.add(c)
			c.Flags().BoolVar(&in.KeepGrants, "keep-grants", false, "leave applications signed in")
		}, func(c *cobra.Command, by admin.Caller, args []string) (err error) {
			in.Name = args[0]
			if in.Password, err = readPassword(s, fromStdin); err != nil {
				return err
			}
			u, err := admin.UserPasswd.Do(c.Context(), by, in)
			if err != nil {
				return err
			}
			return out.print(s, u, "changed the password of %s", in.Name)
		})
}

func newUserList(s std) *cobra.Command {
	var asJSON bool
	var match string
	return callerCommand(s, admin.UserList, &cobra.Command{
		Example: "--json\n--match @example.com", Args: cobra.NoArgs,
	},
		func(c *cobra.Command) {
			c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
			matchFlag(c, &match, "name, mail address or ID")
		},
		func(c *cobra.Command, by admin.Caller, _ []string) error {
			all, err := allUsers(c.Context(), by, match)
			if err != nil {
				return err
			}
			return printUsers(s, all, asJSON)
		})
}

// stateOf describes the role and state of an account.
func stateOf(v admin.User) string {
	var state []string
	switch {
	case v.Admin:
		state = append(state, "admin")
	case v.Role != "":
		state = append(state, string(v.Role))
	}
	if v.Disabled {
		state = append(state, "disabled")
	}
	return strings.Join(state, ",")
}

func printUsers(s std, all []admin.User, asJSON bool) error {
	if asJSON {
		return printJSON(s.out, all)
	}
	t := newTable(s.out, "NAME", "ID", "STATE", "LAST SIGN-IN")
	for _, v := range all {
		t.row(v.Name, v.ID, stateOf(v), label.Moment(v.LastLoginAt))
	}
	return t.flush()
}

func newUserShow(s std) *cobra.Command {
	var asJSON bool
	return callerCommand(s, admin.UserShow, &cobra.Command{
		Use: "NAME", Args: cobra.ExactArgs(1), Example: "alice --json",
	},
		func(c *cobra.Command) { c.Flags().BoolVar(&asJSON, "json", false, "print JSON") },
		func(c *cobra.Command, by admin.Caller, args []string) error {
			v, err := admin.UserShow.Do(c.Context(), by, admin.UserName{Name: args[0]})
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(s.out, v)
			}
			printFields(s.out, "name", v.Name, "id", v.ID, "state", stateOf(v.User),
				"created", label.Moment(v.CreatedAt), "last sign-in", label.Moment(v.LastLoginAt), "mail", v.Mail,
				"groups", strings.Join(v.Groups, " "), "grants", toApplications(v.Count()))
			for _, g := range v.ProviderGroups {
				printFields(s.out, "by provider", g.Group+" ("+g.String()+")")
			}
			for _, a := range v.Access {
				printFields(s.out, "access", a.Resource+": "+a.String())
			}
			if len(v.Grants) == 0 {
				return nil
			}
			return printGrants(s, v.Grants)
		})
}

// readPassword reads a password from standard input, or asks for it on a terminal, twice and
// without echo.
func readPassword(s std, fromStdin bool) (string, error) {
	if fromStdin {
		line, err := bufio.NewReader(s.in).ReadString('\n')
		if line == "" && err != nil {
			return "", errors.New("no password on standard input")
		}
		return strings.TrimRight(line, "\r\n"), nil
	}
	f, ok := s.in.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return "", errors.New("no terminal to ask for a password; use --password-stdin")
	}
	var typed [2]string
	for i, prompt := range []string{"Password: ", "Again: "} {
		fmt.Fprint(s.err, prompt)
		b, err := term.ReadPassword(int(f.Fd()))
		fmt.Fprintln(s.err)
		if err != nil {
			return "", fmt.Errorf("the password could not be read: %w", err)
		}
		typed[i] = string(b)
	}
	if typed[0] != typed[1] {
		return "", errors.New("the two passwords differ; nothing was changed")
	}
	return typed[0], nil
}

func newUserSetMail(s std) *cobra.Command {
	var out answering
	return callerCommand(s, admin.UserSetMail, &cobra.Command{
		Use: "NAME [ADDRESS]", Example: "alice alice@example.com", Args: cobra.RangeArgs(1, 2),
	}, out.add, func(c *cobra.Command, by admin.Caller, args []string) error {
		in := admin.NewMail{Name: args[0]}
		if len(args) > 1 {
			in.Mail = args[1]
		}
		u, err := admin.UserSetMail.Do(c.Context(), by, in)
		if err != nil {
			return err
		}
		return out.print(s, u, "mail to %s goes to: %s", in.Name, cmp.Or(in.Mail, "nowhere"))
	})
}

// roleFlags holds the flags --role and --admin for a new account.
type roleFlags struct{ role admin.Role }

func (f *roleFlags) add(c *cobra.Command) {
	const says = "administration role: administrator, auditor, support or none"
	c.Flags().Func("role", says, func(name string) (err error) {
		f.role, err = admin.ParseRole(name)
		return err
	})
	c.Flags().BoolFunc("admin", "the same as --role administrator", func(string) error {
		f.role = admin.Administrator
		return nil
	})
	c.MarkFlagsMutuallyExclusive("role", "admin")
}

func newUserSetRole(s std) *cobra.Command {
	var out answering
	return callerCommand(s, admin.UserSetRole, &cobra.Command{
		Use: "NAME ROLE", Example: "carol auditor\ncarol none", Args: cobra.ExactArgs(2),
	}, out.add, func(c *cobra.Command, by admin.Caller, args []string) error {
		u, err := admin.UserSetRole.Do(c.Context(), by, admin.UserRole{Name: args[0], Role: args[1]})
		if err != nil {
			return err
		}
		role := string(u.Role)
		if role == "" {
			role = admin.NoRole
		}
		return out.print(s, u, "the role of %s is %s", u.Name, role)
	})
}

func newUserGroups(s std) *cobra.Command {
	var asJSON bool
	return callerCommand(s, admin.UserGroups, &cobra.Command{
		Use: "NAME", Args: cobra.ExactArgs(1), Example: "ada@company\nada@company --json",
	}, func(c *cobra.Command) { c.Flags().BoolVar(&asJSON, "json", false, "print JSON") },
		func(c *cobra.Command, by admin.Caller, args []string) error {
			found, err := admin.UserGroups.Do(c.Context(), by, admin.UserName{Name: args[0]})
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(s.out, found.Items)
			}
			t := newTable(s.out, "PROVIDER", "GROUPS", "ORGANIZATIONS", "TEAMS", "SAID AT", "WITHHELD")
			for _, m := range found.Items {
				var withheld []string
				for _, w := range m.Withheld {
					withheld = append(withheld, w.Resource+": "+strings.Join(w.Scopes, " "))
				}
				t.row(m.Connector, strings.Join(m.Groups, " "), strings.Join(m.Organizations, " "),
					strings.Join(m.Teams, " "), label.Moment(m.SaidAt), strings.Join(withheld, "; "))
			}
			return t.flush()
		})
}
