package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/internal/users"
)

func newUserInvite(s std) *cobra.Command {
	var i users.Invitation
	var role roleFlags
	var asJSON bool
	return storeCommand(s, &cobra.Command{
		Use: "invite NAME", Short: "Print a one-time link by which a person makes an account", Args: cobra.ExactArgs(1),
		Long: "Prints a link to hand over: its person chooses a password or makes a passkey, and the account is there. " +
			"With --mail, and mail.smtp configured, it is sent as well. It works once; a new one replaces it.",
		Example: "  mcp-authd user invite alice\n  mcp-authd user invite bob --mail bob@example.com --ttl 7d",
	}, func(c *cobra.Command) {
		role.add(c)
		c.Flags().StringVar(&i.Mail, "mail", "", "where the person gets mail")
		c.Flags().Var((*lifetime)(&i.TTL), "ttl", "how long the link is good (default: login.links.invite_ttl)")
		c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	}, func(c *cobra.Command, a *app, args []string) error {
		if err := a.takesLinks(); err != nil {
			return err
		}
		u, err := a.accounts()
		if err != nil {
			return err
		}
		i.Name, i.Role = args[0], role.role
		if err := checkTTL(c, i.TTL, users.MaxInviteTTL); err != nil {
			return err
		}
		if i.Mail != "" && a.config.Mail.SMTP.Address == "" {
			fmt.Fprintln(s.err, "mcp-authd: mail.smtp is not configured, so the link is not sent: hand it over")
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
		Long: "Prints a link to hand over: its person chooses a new password, or makes a passkey that takes its place, " +
			"and every session and grant of the account ends. When the person has other ways in, the link waits " +
			"(login.links.recover_delay, 24 hours), and the person is told and can stop it. " +
			"It works once; a new one replaces it.",
		Example: "  mcp-authd user recover alice\n  mcp-authd user recover alice --now",
	}, func(c *cobra.Command) {
		c.Flags().BoolVar(&o.Now, "now", false, "refuse if the link would have to wait")
		c.Flags().Var((*lifetime)(&o.TTL), "ttl",
			"how long the link works, from the moment when it starts to (default: login.links.recover_ttl)")
		c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	}, func(c *cobra.Command, a *app, args []string) error {
		if err := a.takesLinks(); err != nil {
			return err
		}
		u, err := a.accounts()
		if err != nil {
			return err
		}
		if err := checkTTL(c, o.TTL, users.MaxRecoverTTL); err != nil {
			return err
		}
		made, err := u.Recover(c.Context(), a.config.Issuer, args[0], o)
		return a.printLink(made, err, args[0], asJSON)
	})
}

// lifetime is a flag with a duration that is written as in the configuration, also in days.
type lifetime time.Duration

// String implements pflag.Value. Without a default, help shows none.
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

// checkTTL is an error when --ttl was given, and is out of bounds.
func checkTTL(c *cobra.Command, ttl, most time.Duration) error {
	if c.Flags().Changed("ttl") && (ttl < users.MinLinkTTL || ttl > most) {
		return fmt.Errorf("--ttl is not between 1m and %s", config.Duration(most))
	}
	return nil
}

// takesLinks is an error where a person could do nothing with a link: neither passwords nor passkeys
// sign people in.
func (a *app) takesLinks() error {
	site, err := a.config.Site()
	if err != nil || a.config.Login.Local || site.Offered() {
		return err
	}
	return fmt.Errorf("a link would be of no use: login.local is false, and passkeys do not work here, since %s",
		site.Missing)
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
		return admin.ExplainUser(err, name)
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
