package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/admin"
)

// maxAssertionFile limits how much of a file is read.
const maxAssertionFile = 64 << 10

func newTrustTest(s std) *cobra.Command {
	var asJSON bool
	c := callerCommand(s, admin.TrustTest, &cobra.Command{
		Use: "[FILE]", Args: cobra.MaximumNArgs(1), Example: "<assertion.jwt\nassertion.jwt --json",
	}, func(c *cobra.Command) { c.Flags().BoolVar(&asJSON, "json", false, "print JSON") },
		func(c *cobra.Command, by admin.Caller, args []string) error {
			raw, err := readAssertion(s, args)
			if err != nil {
				return err
			}
			report, err := admin.TrustTest.Do(c.Context(), by, admin.AssertionText{Assertion: raw})
			if err != nil {
				return err
			}
			if asJSON {
				err = printJSON(s.out, report)
			} else {
				err = printReport(s, report)
			}
			if err == nil && !report.Accepted {
				err = errSilent
			}
			return err
		})
	c.Long += "\nIt is read from a file, or from standard input. Ends with 1 when no entry fits."
	return c
}

// readAssertion reads an assertion from a file. If the file does not exist, the argument itself may
// be the assertion.
func readAssertion(s std, args []string) (string, error) {
	if len(args) == 0 || args[0] == "-" {
		return readToken(s, nil)
	}
	f, err := os.Open(args[0])
	if err != nil {
		if strings.Count(args[0], ".") == 2 && !strings.Contains(args[0], "/") {
			return args[0], nil
		}
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxAssertionFile))
	return strings.TrimSpace(string(b)), err
}

func printReport(s std, r admin.AssertionReport) error {
	t := newTable(s.out, "ENTRY", "RULE", "HOLDS", "WHY")
	for _, v := range r.Entries {
		for _, rule := range v.Rules {
			holds := "no"
			if rule.OK {
				holds = "yes"
			}
			t.row(v.Entry, string(rule.Rule), holds, rule.Why)
		}
	}
	if len(r.Entries) > 0 { // otherwise no rule was evaluated
		if err := t.flush(); err != nil {
			return err
		}
		fmt.Fprintln(s.out)
	}
	if !r.Accepted {
		_, err := fmt.Fprintf(s.out, "refused: %s (%s)\n", r.Refused, r.Code)
		return err
	}
	name := r.Name
	if name == "" {
		name = r.Subject
	}
	_, err := fmt.Fprintf(s.out, "accepted by %s, for %s\n", r.Entry, printable(name))
	return err
}
