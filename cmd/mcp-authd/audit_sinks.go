package main

import (
	"strconv"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/admin"
)

func newAuditSinks(s std) *cobra.Command {
	var asJSON bool
	return callerCommand(s, admin.AuditSinks, &cobra.Command{Args: cobra.NoArgs, Example: "--json"},
		func(c *cobra.Command) { c.Flags().BoolVar(&asJSON, "json", false, "print JSON") },
		func(c *cobra.Command, by admin.Caller, _ []string) error {
			all, err := admin.AuditSinks.Do(c.Context(), by, admin.None{})
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(s.out, all.Items)
			}
			return printSinks(s, all.Items)
		})
}

func printSinks(s std, all []admin.AuditSink) error {
	t := newTable(s.out, "SINK", "KIND", "FORMAT", "WAITING", "OLDEST", "LOST", "FAILED")
	for _, v := range all {
		oldest := ""
		if !v.Oldest.IsZero() {
			oldest = moment(v.Oldest)
		}
		waiting := strconv.FormatInt(v.Waiting, 10)
		if !v.Opened {
			waiting = "never opened"
		}
		t.row(v.ID, v.Kind, v.Format, waiting, oldest, strconv.FormatInt(v.Lost, 10), v.Failed)
	}
	return t.flush()
}
