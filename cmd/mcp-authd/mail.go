package main

import (
	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/admin"
)

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
