package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/label"
)

func newHealthCommand(s std) *cobra.Command {
	return group("health", "Show the health of an installation", newHealthShow(s))
}

func newHealthShow(s std) *cobra.Command {
	var asJSON bool
	c := callerCommand(s, admin.HealthShow, &cobra.Command{Args: cobra.NoArgs, Example: "\n--json"},
		func(c *cobra.Command) { c.Flags().BoolVar(&asJSON, "json", false, "print JSON") },
		func(c *cobra.Command, by admin.Caller, _ []string) error {
			h, err := admin.HealthShow.Do(c.Context(), by, admin.None{})
			if err != nil {
				return err
			}
			if asJSON {
				err = printJSON(s.out, h)
			} else {
				err = printHealth(s, h)
			}
			if err == nil && !h.OK {
				err = errSilent
			}
			return err
		})
	c.Long += " Exits with 1 if something fails."
	return c
}

func printHealth(s std, h admin.Health) error {
	printFields(s.out, "issuer", h.Issuer, "version", h.Version, "audit log",
		fmt.Sprintf("%s, %d signed", label.Count(h.AuditEntries, "entry", "entries"), h.AuditSigned),
		"signed at", label.Moment(h.AuditSignedAt))
	fmt.Fprintln(s.out)
	if err := printReplicas(s, h.Replicas); err != nil {
		return err
	}
	for _, f := range h.Findings {
		printHealthFinding(s, f)
	}
	return nil
}

// printReplicas prints the servers of the database, with the number of queued audit entries.
func printReplicas(s std, all []admin.Replica) error {
	if len(all) == 0 {
		return nil
	}
	t := newTable(s.out, "REPLICA", "ADDRESS", "STATE", "VERSION", "SINCE", "LAST SEEN", "AUDIT WAITING")
	for _, r := range all {
		state := r.State
		if r.This {
			state += ", has answered"
		}
		t.row(r.Name, r.Address, state, r.Version, label.Moment(r.StartedAt), label.Moment(r.SeenAt),
			fmt.Sprint(r.AuditWaiting))
	}
	err := t.flush()
	fmt.Fprintln(s.out)
	return err
}

func newMailCommand(s std) *cobra.Command {
	return group("mail", "Test whether mail can be sent", newMailTest(s))
}

func newMailTest(s std) *cobra.Command {
	var out answering
	return callerCommand(s, admin.MailTest, &cobra.Command{
		Use: "ADDRESS", Example: "alice@example.com", Args: cobra.ExactArgs(1),
	}, out.add, func(c *cobra.Command, by admin.Caller, args []string) error {
		sent, err := admin.MailTest.Do(c.Context(), by, admin.TestLetter{Mail: args[0]})
		if err != nil {
			return err
		}
		return out.print(s, sent, "the mail server %s has taken a letter to %s; see whether it arrives", sent.Server, sent.Mail)
	})
}
