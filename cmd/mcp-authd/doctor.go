package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/doctor"
	"github.com/mcp-authd/mcp-authd/internal/label"
)

func newDoctorCommand(s std) *cobra.Command {
	var where settings
	var asJSON bool
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Test this installation and report problems",
		Long: "Tests this installation: the configuration, the issuer as seen from outside, TLS, the clock, the\n" +
			"database, the keys, who may read the secrets, whether the resources and scopes in the configuration\n" +
			"exist, and each provider, with the redirect URI to register there. The server may be running or not.\n" +
			"The only change is one row of the database, which /readyz also writes to test whether the database\n" +
			"accepts writes. Exits with 1 when a test fails.",
		Example: "  mcp-authd doctor\n  mcp-authd doctor --config /etc/mcp-authd/config.yaml --json",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(c.Context(), 2*time.Minute)
			defer cancel()
			return printExamination(s, doctor.Run(ctx, where.file, where.data, s.host()), asJSON)
		},
	}
	where.add(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func printExamination(s std, r doctor.Report, asJSON bool) error {
	if asJSON {
		if err := printJSON(s.out, r); err != nil {
			return err
		}
	} else {
		for _, f := range r {
			printHealthFinding(s, f)
		}
	}
	if r.Failed() {
		return errSilent
	}
	return nil
}

func printHealthFinding(s std, f admin.Finding) {
	mark := map[string]string{"ok": "✓", "warning": "!", "fail": "✗", "skipped": "-"}[f.Level]
	lines := strings.Split(f.What, "\n")
	fmt.Fprintf(s.out, "%s %-9s %s\n", mark, f.Check, label.Printable(lines[0]))
	for _, line := range append(lines[1:], f.Advice) {
		if line != "" {
			fmt.Fprintf(s.out, "            %s\n", label.Printable(line))
		}
	}
}
