package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/label"
)

func newResourceTools(s std) *cobra.Command {
	var asJSON bool
	return callerCommand(s, admin.ResourceTools, &cobra.Command{
		Use: "URL", Args: cobra.ExactArgs(1), Example: "https://mcp.example.com/mcp\nhttps://mcp.example.com/mcp --json",
	}, func(c *cobra.Command) { c.Flags().BoolVar(&asJSON, "json", false, "print JSON") },
		func(c *cobra.Command, by admin.Caller, args []string) error {
			all, err := admin.ResourceTools.Do(c.Context(), by, admin.ResourceURL{URI: args[0]})
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(s.out, all.Items)
			}
			t := newTable(s.out, "TOOL", "STATE", "ACCEPTED", "CHANGED")
			for _, tool := range all.Items {
				state := tool.State
				if tool.Held {
					state += ", held back"
				}
				t.row(tool.Name, state, label.Moment(tool.AcceptedAt), label.Moment(tool.OfferedAt))
			}
			return t.flush()
		})
}

func newResourceTool(s std) *cobra.Command {
	var asJSON bool
	return callerCommand(s, admin.ResourceTool, &cobra.Command{
		Use: "URL TOOL", Args: cobra.ExactArgs(2), Example: "https://mcp.example.com/mcp search",
	}, func(c *cobra.Command) { c.Flags().BoolVar(&asJSON, "json", false, "print JSON") },
		func(c *cobra.Command, by admin.Caller, args []string) error {
			d, err := admin.ResourceTool.Do(c.Context(), by, admin.ToolOf{URI: args[0], Name: args[1]})
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(s.out, d)
			}
			return printDifference(s, d)
		})
}

func printDifference(s std, d admin.ToolDifference) error {
	if _, err := fmt.Fprintf(s.out, "%s: %s\n", label.Printable(d.Name), d.State); err != nil {
		return err
	}
	_, err := fmt.Fprintln(s.out, label.PrintableLines(strings.Join(d.Lines, "\n")))
	return err
}

func newResourceAccept(s std) *cobra.Command {
	var sure confirmation
	var digest string
	var keep, asJSON bool
	return callerCommand(s, admin.ResourceAccept, &cobra.Command{
		Use: "URL TOOL", Args: cobra.ExactArgs(2),
		Example: "https://mcp.example.com/mcp search\nhttps://mcp.example.com/mcp search --keep\n" +
			"https://mcp.example.com/mcp search --digest DIGEST --yes",
	}, func(c *cobra.Command) {
		sure.add(c)
		c.Flags().StringVar(&digest, "digest", "",
			"digest of the reviewed definition (resource tool --json); default: the new definition")
		c.Flags().BoolVar(&keep, "keep", false,
			"keep the accepted definition, and forget the new one until it is seen again")
		c.Flags().BoolVar(&asJSON, "json", false, "print the tool as JSON")
		c.MarkFlagsMutuallyExclusive("digest", "keep")
	}, func(c *cobra.Command, by admin.Caller, args []string) error {
		d, err := admin.ResourceTool.Do(c.Context(), by, admin.ToolOf{URI: args[0], Name: args[1]})
		if err != nil {
			return err
		}
		wanted, what := cmp.Or(digest, d.Offered, d.Accepted), "This accepts the definition of the tool with +."
		if keep {
			if wanted, what = d.Accepted, "This keeps the definition of the tool with -."; wanted == "" {
				return fmt.Errorf("%q has no accepted definition to keep", label.Printable(d.Name))
			}
		}
		if d.Offered != "" && !sure.yes {
			if err := printDifference(std{out: s.err}, d); err != nil {
				return err
			}
			if err := sure.ask(s, what); err != nil {
				return err
			}
		}
		done, err := admin.ResourceAccept.Do(c.Context(), by, admin.ToolAcceptance{
			URI: args[0], Name: args[1], Digest: wanted,
		})
		if err != nil {
			return err
		}
		if asJSON {
			return printJSON(s.out, done)
		}
		_, err = fmt.Fprintf(s.out, "%s is %s\n", label.Printable(done.Name), done.State)
		return err
	})
}
