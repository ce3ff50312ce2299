package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/attempt"
	"github.com/mcp-authd/mcp-authd/internal/installation"
	"github.com/mcp-authd/mcp-authd/internal/label"
	"github.com/mcp-authd/mcp-authd/internal/signin"
)

func newCheckCommand(s std) *cobra.Command {
	var where settings
	var asJSON bool
	c := &cobra.Command{
		Use:   "check MCP_URL",
		Short: "Test a protected MCP server from outside",
		Long: "Tests an MCP server as a client sees it, without signing in: challenge, metadata, audience, and lost\n" +
			"headers. Exits with 1 when a test fails. If you can read the secret key of the installation on this\n" +
			"machine, its server does not record these requests as attempts.",
		Example: "  mcp-authd check https://mcp.example.com/mcp",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			ctx, cancel := context.WithTimeout(c.Context(), time.Minute)
			defer cancel()
			own, err := where.localProber(s)
			if err != nil {
				return err
			}
			through := installation.Probing{
				RoundTripper: http.DefaultTransport, Prober: func() *attempt.Prober { return own },
			}
			findings := signin.NewThrough(through).Check(ctx, args[0])
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
	where.add(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func printFinding(s std, f signin.Finding) {
	mark := map[string]string{"ok": "✓", "warning": "!", "fail": "✗"}[f.Level]
	fmt.Fprintf(s.out, "%s %s\n", mark, label.Printable(f.What))
	if f.Advice != "" {
		fmt.Fprintf(s.out, "  %s\n", label.Printable(f.Advice))
	}
}

// localProber returns the prober of the installation on this machine. It returns nil without a key.
// Without flags, it also returns nil if the key cannot be read, because check can test other
// servers. With flags, it returns errors in the configuration or key.
func (w settings) localProber(s std) (*attempt.Prober, error) {
	s.err = io.Discard
	a, err := w.load(s)
	if err == nil && a.HasKey() {
		err = a.LoadKeys()
	}
	if err != nil && w != (settings{}) {
		return nil, err
	}
	if err != nil {
		return nil, nil
	}
	return a.Prober(), nil
}
