package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/signin"
)

func newCheckCommand(s std) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "check MCP_URL",
		Short: "Test a protected MCP server from outside",
		Long: "Tests an MCP server as a client sees it, without signing in: challenge, metadata, audience,\n" +
			"headers lost on the way. Exits with 1 when a test fails.",
		Example: "  mcp-authd check https://mcp.example.com/mcp",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			ctx, cancel := context.WithTimeout(c.Context(), time.Minute)
			defer cancel()
			findings := signin.NewThrough(probing{http.DefaultTransport}).Check(ctx, args[0])
			if asJSON {
				if err := printJSON(s.out, findings); err != nil {
					return err
				}
			}
			failed := false
			for _, f := range findings {
				failed = failed || f.Level == "fail"
				if !asJSON {
					printFinding(s, f)
				}
			}
			if failed {
				return errSilent
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// probeAgent is the User-Agent of the commands doctor and check. It names the agent of their attempts and hides
// nothing: anyone can send it.
const probeAgent = "mcp-authd-probe"

// probing names the command in the requests it sends.
type probing struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (p probing) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("User-Agent", probeAgent)
	return p.RoundTripper.RoundTrip(r)
}

func printFinding(s std, f signin.Finding) {
	mark := map[string]string{"ok": "✓", "warning": "!", "fail": "✗"}[f.Level]
	fmt.Fprintf(s.out, "%s %s\n", mark, printable(f.What))
	if f.Advice != "" {
		fmt.Fprintf(s.out, "  %s\n", printable(f.Advice))
	}
}
