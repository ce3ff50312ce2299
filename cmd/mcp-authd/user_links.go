package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/users"
)

func newUserInvite(s std) *cobra.Command {
	var i users.Invitation
	var asJSON bool
	return storeCommand(s, &cobra.Command{
		Use: "invite NAME", Short: "Print a one-time link by which a person makes an account", Args: cobra.ExactArgs(1),
		Long: "Prints a link to hand over: its person chooses a password, and the account is there. " +
			"With --mail, and mail.smtp configured, it is sent as well. It works once; a new one replaces it.",
		Example: "  mcp-authd user invite alice\n  mcp-authd user invite bob --mail bob@example.com --ttl 24h",
	}, func(c *cobra.Command) {
		c.Flags().BoolVar(&i.Admin, "admin", false, "make it an administrator")
		c.Flags().StringVar(&i.Mail, "mail", "", "where the person gets mail")
		c.Flags().DurationVar(&i.TTL, "ttl", users.InvitationTTL, "how long the link is good")
		c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	}, func(c *cobra.Command, a *app, args []string) error {
		if err := a.takesPasswords(); err != nil {
			return err
		}
		u, err := a.accounts()
		if err != nil {
			return err
		}
		if i.Name = args[0]; i.TTL < time.Minute || i.TTL > 30*24*time.Hour {
			return errors.New("--ttl is not between 1m and 720h")
		}
		made, err := u.Invite(c.Context(), a.config.Issuer, i)
		return a.printLink(made, err, i.Name, asJSON)
	})
}

func newUserRecover(s std) *cobra.Command {
	var o users.RecoveryOptions
	var asJSON bool
	return storeCommand(s, &cobra.Command{
		Use: "recover NAME", Short: "Print a one-time link by which a person gets back into an account",
		Args: cobra.ExactArgs(1),
		Long: "Prints a link to hand over: its person chooses a new password, and every session and grant of the account ends. " +
			"When the person has other ways in, the link waits for 24 hours, and the person is told and can stop it. " +
			"It works once; a new one replaces it.",
		Example: "  mcp-authd user recover alice\n  mcp-authd user recover alice --now",
	}, func(c *cobra.Command) {
		c.Flags().BoolVar(&o.Now, "now", false, "refuse if the link would have to wait")
		c.Flags().DurationVar(&o.TTL, "ttl", users.RecoveryTTL, "how long the link is good, once it is")
		c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	}, func(c *cobra.Command, a *app, args []string) error {
		if err := a.takesPasswords(); err != nil {
			return err
		}
		u, err := a.accounts()
		if err != nil {
			return err
		}
		if o.TTL < time.Minute || o.TTL > 7*24*time.Hour {
			return errors.New("--ttl is not between 1m and 168h")
		}
		made, err := u.Recover(c.Context(), a.config.Issuer, args[0], o)
		return a.printLink(made, err, args[0], asJSON)
	})
}

// takesPasswords is an error where people sign in at providers only.
func (a *app) takesPasswords() error {
	if a.config.Login.Local {
		return nil
	}
	return errors.New("login.local is false: people do not sign in with passwords, so a link would be of no use")
}

// linkView is a link as commands show it.
type linkView struct {
	URL       string    `json:"url"`
	NotBefore time.Time `json:"not_before"`
	ExpiresAt time.Time `json:"expires_at"`
	Mail      string    `json:"mail,omitempty"`
}

// printLink prints a link. One that was made, and could not be sent, is printed all the same.
func (a *app) printLink(l users.Link, err error, name string, asJSON bool) error {
	if l.URL == "" {
		return explainUser(err, name)
	}
	if err != nil {
		fmt.Fprintf(a.std.err, "mcp-authd: the link could not be sent to %s, so hand it over: %v\n", l.Mail, err)
		l.Mail = ""
	}
	if asJSON {
		return printJSON(a.std.out, linkView{l.URL, l.NotBefore.UTC(), l.ExpiresAt.UTC(), l.Mail})
	}
	if l.Mail != "" {
		fmt.Fprintf(a.std.err, "sent to %s\n", l.Mail)
	}
	if l.NotBefore.After(time.Now()) {
		fmt.Fprintf(a.std.err, "the person has other ways in: it is good from %s, and the person can stop it\n",
			moment(l.NotBefore))
	}
	fmt.Fprintf(a.std.err, "good until %s, once; give it to %s alone:\n", moment(l.ExpiresAt), name)
	_, err = fmt.Fprintln(a.std.out, l.URL)
	return err
}
