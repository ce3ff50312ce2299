package main

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/label"
)

func newEventsCommand(s std) *cobra.Command {
	return group("events", "Show the receivers of security events", newEventsList(s), newEventsTest(s))
}

func newEventsList(s std) *cobra.Command {
	var asJSON bool
	return callerCommand(s, admin.EventsList, &cobra.Command{Args: cobra.NoArgs, Example: "--json"},
		func(c *cobra.Command) { c.Flags().BoolVar(&asJSON, "json", false, "print JSON") },
		func(c *cobra.Command, by admin.Caller, _ []string) error {
			all, err := admin.EventsList.Do(c.Context(), by, admin.None{})
			if err != nil {
				return err
			}
			return printReceivers(s, all.Items, asJSON)
		})
}

func printReceivers(s std, all []admin.EventReceiver, asJSON bool) error {
	if asJSON {
		return printJSON(s.out, all)
	}
	t := newTable(s.out, "RECEIVER", "CONFIGURED", "WAITING", "OLDEST", "TRIES", "FAILED")
	for _, v := range all {
		oldest := ""
		if !v.Oldest.IsZero() {
			oldest = label.Moment(v.Oldest)
		}
		configured := map[bool]string{true: "yes", false: "no"}[v.Configured]
		t.row(v.ID, configured, strconv.Itoa(v.Waiting), oldest, strconv.FormatInt(v.Tries, 10), v.Failed)
	}
	return t.flush()
}

func newEventsTest(s std) *cobra.Command {
	var asJSON bool
	return callerCommand(s, admin.EventsTest, &cobra.Command{
		Use: "RECEIVER", Args: cobra.ExactArgs(1), Example: "siem",
	}, func(c *cobra.Command) { c.Flags().BoolVar(&asJSON, "json", false, "print the id as JSON") },
		func(c *cobra.Command, by admin.Caller, args []string) error {
			sent, err := admin.EventsTest.Do(c.Context(), by, admin.ReceiverID{Receiver: args[0]})
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(s.out, sent)
			}
			_, err = fmt.Fprintf(s.out, "%s waits for %s\n", sent.ID, sent.Receiver)
			return err
		})
}
