package main

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/admin"
)

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
		t.row(v.Kind, v.Name, v.Mail, moment(v.CreatedAt), moment(v.NotBefore), moment(v.ExpiresAt))
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
