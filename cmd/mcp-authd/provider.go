package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/label"
)

func newProviderCommand(s std) *cobra.Command {
	return group("provider", "Show identity providers", newProviderList(s), newProviderShow(s))
}

func newProviderList(s std) *cobra.Command {
	var asJSON bool
	return callerCommand(s, admin.ProviderList, &cobra.Command{Args: cobra.NoArgs, Example: "\n--json"},
		func(c *cobra.Command) { c.Flags().BoolVar(&asJSON, "json", false, "print JSON") },
		func(c *cobra.Command, by admin.Caller, _ []string) error {
			all, err := admin.ProviderList.Do(c.Context(), by, admin.None{})
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(s.out, all.Items)
			}
			t := newTable(s.out, "ID", "NAME", "TYPE", "ISSUER", "REDIRECT URI", "STATE")
			for _, p := range all.Items {
				t.row(p.ID, p.Name, p.Type, p.Issuer, p.RedirectURI, stateOfProvider(p))
			}
			return t.flush()
		})
}

// stateOfProvider returns the problems that a server has observed, or "".
func stateOfProvider(p admin.Provider) string {
	switch {
	case p.Resting:
		return "left alone: it does not answer"
	case p.Unanswered:
		return "does not answer"
	}
	return ""
}

func newProviderShow(s std) *cobra.Command {
	var asJSON bool
	c := callerCommand(s, admin.ProviderShow, &cobra.Command{
		Use: "ID", Args: cobra.ExactArgs(1), Example: "company\ncompany --json",
	}, func(c *cobra.Command) { c.Flags().BoolVar(&asJSON, "json", false, "print JSON") },
		func(c *cobra.Command, by admin.Caller, args []string) error {
			p, err := admin.ProviderShow.Do(c.Context(), by, admin.ProviderID{ID: args[0]})
			if err != nil {
				return err
			}
			if asJSON {
				err = printJSON(s.out, p)
			} else {
				printProvider(s, p)
			}
			if err == nil && !p.OK {
				err = errSilent
			}
			return err
		})
	c.Long += " Exits with 1 if users cannot sign in there."
	return c
}

func printProvider(s std, p admin.ProviderDetails) {
	printFields(s.out, "id", p.ID, "name", p.Name, "type", p.Type, "issuer", p.Issuer, "redirect URI", p.RedirectURI,
		"logout URI", p.LogoutURI, "asked every", p.CheckEvery, "state", stateOfProvider(p.Provider),
		"metadata read", readAt(p.MetadataReadAt), "next read", readAt(p.MetadataNextAt), "keys read",
		readAt(p.KeysReadAt), "last failure", readAt(p.FailedAt), "which was", p.Failed)
	fmt.Fprintln(s.out)
	for _, f := range p.Findings {
		level := f.Level
		if level == "problem" {
			level = admin.LevelFail
		}
		printHealthFinding(s, admin.Finding{Check: "provider", Level: level, What: f.What, Advice: f.Advice})
	}
}

// readAt formats a time, or returns "" for the zero time.
func readAt(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return label.Moment(t)
}
