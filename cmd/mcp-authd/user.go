package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/users"
	"github.com/mcp-authd/mcp-authd/storage"
)

func newUserCommand(s std) *cobra.Command {
	named := func(c *cobra.Command) *cobra.Command { return completing(s, (*app).userNames, c) }
	return group("user", "Manage local accounts",
		newUserAdd(s), newUserList(s), named(newUserShow(s)), named(newUserIdentities(s)), named(newUserWays(s)),
		named(newUserPasswd(s)),
		named(newUserChange(s, "disabled", admin.UserDisable)), named(newUserChange(s, "enabled", admin.UserEnable)),
		named(newUserDelete(s)), named(newUserSetMail(s)), named(newUserSetRole(s)), newUserInvite(s),
		named(newUserRecover(s)), named(newUserLinks(s)),
	)
}

func newUserChange(s std, done string, change admin.Operation[admin.UserName, admin.User]) *cobra.Command {
	return callerCommand(s, change, &cobra.Command{Use: "NAME", Example: "alice", Args: cobra.ExactArgs(1)}, nil,
		func(c *cobra.Command, by admin.Caller, args []string) error {
			if _, err := change.Do(c.Context(), by, admin.UserName{Name: args[0]}); err != nil {
				return err
			}
			_, err := fmt.Fprintf(s.out, "%s %s\n", done, args[0])
			return err
		})
}

func newUserDelete(s std) *cobra.Command {
	var sure confirmation
	return storeCommand(s, &cobra.Command{
		Use: "delete NAME", SuggestFor: []string{"remove", "rm"},
		Short: "Remove an account with its sessions and grants", Args: cobra.ExactArgs(1),
		Long:    "Removes an account, its sign-ins and what it allowed applications. Says what will end, and asks on a terminal.",
		Example: "  mcp-authd user delete alice\n  mcp-authd user delete alice --yes",
	}, sure.add, func(c *cobra.Command, a *app, args []string) error {
		account, err := a.person(c.Context(), args[0])
		if err != nil {
			return err
		}
		grants, err := a.someGrants(c.Context(), storage.Selection{UserID: account.ID})
		if err != nil {
			return err
		}
		ends := grants.toApplications()
		if err := sure.ask(s,
			fmt.Sprintf("This removes the account %s for good, with its sign-ins and %s.", account.Name,
				ends)); err != nil {
			return err
		}
		u, err := a.accounts()
		if err != nil {
			return err
		}
		if err := u.Delete(c.Context(), account.Name); err != nil {
			return admin.ExplainUser(err, args[0])
		}
		_, err = fmt.Fprintf(s.out, "deleted %s; ended: %s\n", account.Name, ends)
		return errors.Join(err, a.followCuts(c.Context()))
	})
}

// cutting is a command that may cut more grants than are marked at once.
func cutting(run func(*cobra.Command, *app, []string) error) func(*cobra.Command, *app, []string) error {
	return func(c *cobra.Command, a *app, args []string) error {
		if err := run(c, a, args); err != nil {
			return err
		}
		return a.followCuts(c.Context())
	}
}

func onAccounts(run func(*cobra.Command, *users.Users, []string) error) func(*cobra.Command, *app, []string) error {
	return func(c *cobra.Command, a *app, args []string) error {
		u, err := a.accounts()
		if err != nil {
			return err
		}
		return run(c, u, args)
	}
}

func newUserAdd(s std) *cobra.Command {
	var fromStdin, asJSON bool
	var mail string
	var role roleFlags
	return commandOn(settings.openOrMake, s, &cobra.Command{
		Use: "add NAME", Short: "Create an account", Args: cobra.ExactArgs(1),
		Example: "  mcp-authd user add alice\n  printf %s \"$PASSWORD\" | mcp-authd user add alice --password-stdin\n" +
			"  mcp-authd user add carol --role auditor",
	}, func(c *cobra.Command) {
		c.Flags().BoolVar(&fromStdin, "password-stdin", false, "read the password from standard input")
		role.add(c)
		c.Flags().StringVar(&mail, "mail", "", "where the person gets mail")
		c.Flags().BoolVar(&asJSON, "json", false, "print the account as JSON")
	}, onAccounts(func(c *cobra.Command, u *users.Users, args []string) error {
		password, err := readPassword(s, fromStdin)
		if err != nil {
			return err
		}
		created, err := u.Add(c.Context(), users.Account{
			Name: args[0], Password: password, Role: role.role, Mail: mail,
		})
		if err != nil {
			return admin.ExplainUser(err, args[0])
		}
		if asJSON {
			return printJSON(s.out, admin.UserOf(created))
		}
		_, err = fmt.Fprintf(s.out, "created %s (%s)\n", created.Name, created.ID)
		return err
	}))
}

func newUserPasswd(s std) *cobra.Command {
	var fromStdin, keep bool
	return storeCommand(s, &cobra.Command{
		Use: "passwd NAME", Short: "Set a new password; ends the user's sessions and grants", Args: cobra.ExactArgs(1),
		Example: "  mcp-authd user passwd alice",
	}, func(c *cobra.Command) {
		c.Flags().BoolVar(&fromStdin, "password-stdin", false, "read the password from standard input")
		c.Flags().BoolVar(&keep, "keep-grants", false, "leave applications signed in")
	}, cutting(onAccounts(func(c *cobra.Command, u *users.Users, args []string) error {
		password, err := readPassword(s, fromStdin)
		if err != nil {
			return err
		}
		if err := u.SetPassword(c.Context(), args[0], password, keep); err != nil {
			return admin.ExplainUser(err, args[0])
		}
		_, err = fmt.Fprintf(s.out, "changed the password of %s\n", args[0])
		return err
	})))
}

func newUserList(s std) *cobra.Command {
	var asJSON bool
	return callerCommand(s, admin.UserList, &cobra.Command{Example: "--json", Args: cobra.NoArgs},
		func(c *cobra.Command) { c.Flags().BoolVar(&asJSON, "json", false, "print JSON") },
		func(c *cobra.Command, by admin.Caller, _ []string) error {
			all, err := allUsers(c.Context(), by)
			if err != nil {
				return err
			}
			return printUsers(s, all, asJSON)
		})
}

// state is what is special about an account.
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
		t.row(v.Name, v.ID, stateOf(v), moment(v.LastLoginAt))
	}
	return t.flush()
}

func newUserShow(s std) *cobra.Command {
	var asJSON bool
	return storeCommand(s, &cobra.Command{
		Use: "show NAME", Short: "Show one account and what it allowed", Args: cobra.ExactArgs(1),
		Example: "  mcp-authd user show alice --json",
	}, func(c *cobra.Command) { c.Flags().BoolVar(&asJSON, "json", false, "print JSON") },
		func(c *cobra.Command, a *app, args []string) error {
			account, err := a.person(c.Context(), args[0])
			if err != nil {
				return err
			}
			grants, err := a.liveGrants(c.Context(), account.ID, "", "")
			if err != nil {
				return err
			}
			views, err := a.viewGrants(c.Context(), grants)
			if err != nil {
				return err
			}
			v := admin.UserOf(account)
			if asJSON {
				return printJSON(s.out, struct {
					admin.User
					Grants []grantView `json:"grants"`
				}{v, views})
			}
			printFields(s.out, "name", v.Name, "id", v.ID, "state", stateOf(v), "created", moment(v.CreatedAt),
				"last sign-in", moment(v.LastLoginAt), "mail", v.Mail,
				"grants", toApplications(grants))
			if len(views) == 0 {
				return nil
			}
			return printGrants(s, views)
		})
}

// readPassword reads a password from standard input, or asks for it on a terminal,
// twice and without echo.
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
