package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/users"
	"github.com/mcp-authd/mcp-authd/storage"
)

func newUserLinks(s std) *cobra.Command {
	var asJSON bool
	list := storeCommand(s, &cobra.Command{
		Use: "links [NAME]", Short: "List one-time links that can still be used", Args: cobra.MaximumNArgs(1),
		Long: "Lists invitations, links to recover an account, and links by which people reset a password, of one\n" +
			"person or of all. A link itself is not kept, so it cannot be shown again.",
		Example: "  mcp-authd user links\n  mcp-authd user links alice --json\n  mcp-authd user links withdraw alice",
	}, func(c *cobra.Command) { c.Flags().BoolVar(&asJSON, "json", false, "print JSON") },
		func(c *cobra.Command, a *app, args []string) error {
			views, err := a.openLinks(c)
			if err != nil {
				return err
			}
			if len(args) > 0 {
				views = slices.DeleteFunc(views, func(v openLinkView) bool { return !v.of(args[0]) })
			}
			slices.SortFunc(views, func(a, b openLinkView) int { return a.CreatedAt.Compare(b.CreatedAt) })
			return printOpenLinks(s, views, asJSON)
		})
	list.AddCommand(newUserLinksWithdraw(s))
	return list
}

// openLinkView is a link that can still be used, as commands show it.
type openLinkView struct {
	Kind      string    `json:"kind"`
	Name      string    `json:"name"` // of the account, or of the one to be made
	User      string    `json:"user,omitempty"`
	Admin     bool      `json:"admin,omitempty"` // of an invitation
	Role      string    `json:"role,omitempty"`  // of an invitation
	Mail      string    `json:"mail,omitempty"`  // of an invitation
	NotBefore time.Time `json:"not_before"`
	ExpiresAt time.Time `json:"expires_at"`
	CreatedAt time.Time `json:"created_at"`
}

// of reports whether it is a link of a person, by name or id.
func (v openLinkView) of(name string) bool {
	return v.User != "" && v.User == name || strings.EqualFold(v.Name, name)
}

func (a *app) openLinks(c *cobra.Command) ([]openLinkView, error) {
	u, err := a.accounts()
	if err != nil {
		return nil, err
	}
	all, err := pages(func(after string) ([]storage.OneTimeLink, string, error) {
		var from storage.Hash
		copy(from[:], after)
		page, err := u.OpenLinks(c.Context(), from, pageSize)
		if len(page) > 0 {
			after = string(page[len(page)-1].Hash[:])
		}
		return page, after, err
	})
	if err != nil {
		return nil, err
	}
	views, names := make([]openLinkView, 0, len(all)), a.names()
	for _, l := range all {
		if l.UserID != "" {
			l.Name = names.user(c.Context(), l.UserID)
		}
		views = append(views, openLinkView{
			Kind: string(l.Kind), Name: l.Name, User: l.UserID, Mail: l.Mail,
			Admin: l.Role == storage.Administrator, Role: string(l.Role),
			NotBefore: l.NotBefore.UTC(), ExpiresAt: l.ExpiresAt.UTC(), CreatedAt: l.CreatedAt.UTC(),
		})
	}
	return views, nil
}

func printOpenLinks(s std, views []openLinkView, asJSON bool) error {
	if asJSON {
		return printJSON(s.out, views)
	}
	t := newTable(s.out, "KIND", "NAME", "MAIL", "MADE", "FROM", "UNTIL")
	for _, v := range views {
		t.row(v.Kind, v.Name, v.Mail, moment(v.CreatedAt), moment(v.NotBefore), moment(v.ExpiresAt))
	}
	return t.flush()
}

func newUserLinksWithdraw(s std) *cobra.Command {
	return storeCommand(s, &cobra.Command{
		Use: "withdraw NAME", Short: "End every open link of a person", Args: cobra.ExactArgs(1),
		Long:    "Ends the invitation of a name, or every link of an account, whose person is told.",
		Example: "  mcp-authd user links withdraw alice",
	}, nil, func(c *cobra.Command, a *app, args []string) error {
		u, err := a.accounts()
		if err != nil {
			return err
		}
		err = u.WithdrawLinks(c.Context(), args[0])
		if errors.Is(err, users.ErrLink) {
			return fmt.Errorf("there is no open link of %q; see: mcp-authd user links", args[0])
		}
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(s.out, "withdrew the links of %s\n", args[0])
		return err
	})
}
