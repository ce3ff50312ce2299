package main

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/label"
)

func newProposalCommand(s std) *cobra.Command {
	return group("proposal", "Manage proposals for a second administrator",
		newProposalList(s), newProposalShow(s), newProposalAccept(s), newProposalDecline(s))
}

func newProposalList(s std) *cobra.Command {
	var asJSON bool
	return callerCommand(s, admin.ProposalList, &cobra.Command{
		Args: cobra.NoArgs, Example: "\n--remote https://auth.example.com --json",
	},
		func(c *cobra.Command) { c.Flags().BoolVar(&asJSON, "json", false, "print JSON") },
		func(c *cobra.Command, by admin.Caller, _ []string) error {
			all, err := admin.Everything(func(p admin.Paging) (admin.Page[admin.Proposal], error) {
				return admin.ProposalList.Do(c.Context(), by, p)
			})
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(s.out, all)
			}
			if len(all) == 0 {
				_, err := fmt.Fprintln(s.err, "there is no proposal of the last 24 hours; see docs/roles.md, \"Two administrators\"")
				return err
			}
			t := newTable(s.out, "ID", "OPERATION", "ABOUT", "BY", "STATE", "UNTIL")
			for _, p := range all {
				t.row(p.ID, p.Operation, p.About, nameOfParty(p.By), p.State, label.Moment(p.ExpiresAt))
			}
			return t.flush()
		})
}

// nameOfParty returns who proposed or decided something, by name and ID.
func nameOfParty(p admin.Party) string {
	return nameAndID(cmp.Or(p.User, p.ClientName), cmp.Or(p.UserID, p.Client))
}

// nameAndID returns both if known, because another account or client may have the name now.
func nameAndID(name, id string) string {
	switch {
	case name == "":
		return id
	case id == "":
		return name
	}
	return name + " (" + id + ")"
}

// proposalCommand returns a command on one proposal. It prints the resulting proposal.
func proposalCommand(
	s std, o admin.Verb, do func(*cobra.Command, admin.Caller, admin.ProposalID) (any, admin.Proposal, error),
) *cobra.Command {
	var asJSON bool
	return callerCommand(s, o, &cobra.Command{
		Use: "ID", Args: cobra.ExactArgs(1), Example: "prp_01JD4Z8K2M7Q",
	},
		func(c *cobra.Command) { c.Flags().BoolVar(&asJSON, "json", false, "print JSON") },
		func(c *cobra.Command, by admin.Caller, args []string) error {
			whole, p, err := do(c, by, admin.ProposalID{ID: args[0]})
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(s.out, whole)
			}
			printFields(s.out, "id", p.ID, "state", p.State, "operation", p.Operation, "about", p.About,
				"input", string(p.Input), "proposed by", nameOfParty(p.By), "at", label.Moment(p.CreatedAt),
				"until", label.Moment(p.ExpiresAt))
			if !p.DecidedAt.IsZero() {
				printFields(s.out, p.State+" by", nameOfParty(p.Decided), "at", label.Moment(p.DecidedAt))
			}
			return nil
		})
}

func newProposalShow(s std) *cobra.Command {
	return proposalCommand(s, admin.ProposalShow, bare(admin.ProposalShow))
}

func newProposalDecline(s std) *cobra.Command {
	return proposalCommand(s, admin.ProposalDecline, bare(admin.ProposalDecline))
}

// bare wraps an operation whose output is the proposal.
func bare(
	o admin.Operation[admin.ProposalID, admin.Proposal],
) func(*cobra.Command, admin.Caller, admin.ProposalID) (any, admin.Proposal, error) {
	return func(c *cobra.Command, by admin.Caller, id admin.ProposalID) (any, admin.Proposal, error) {
		p, err := o.Do(c.Context(), by, id)
		return p, p, err
	}
}

func newProposalAccept(s std) *cobra.Command {
	return proposalCommand(s, admin.ProposalAccept,
		func(c *cobra.Command, by admin.Caller, id admin.ProposalID) (any, admin.Proposal, error) {
			done, err := admin.ProposalAccept.Do(c.Context(), by, id)
			return done, done.Proposal, err
		})
}
