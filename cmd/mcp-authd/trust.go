package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/label"
	"github.com/mcp-authd/mcp-authd/internal/trust"
)

func newTrustCommand(s std) *cobra.Command {
	return group("trust", "Manage trusted issuers, whose assertions replace a sign-in",
		newTrustAdd(s), newTrustList(s), newTrustShow(s), newTrustTest(s),
		newTrustSwitch(s, admin.TrustDisable, "disabled", true), newTrustSwitch(s, admin.TrustEnable, "enabled", false),
		newTrustRemove(s),
		newTrustLink(s), newTrustUnlink(s), newTrustIssue(s))
}

// stateOfTrust says whether the entry is in use.
func stateOfTrust(v admin.TrustEntry) string {
	switch {
	case v.Problem != "":
		return "not used: " + v.Problem
	case v.DisabledAt != nil:
		return "disabled"
	default:
		return "in use"
	}
}

func newTrustList(s std) *cobra.Command {
	var asJSON bool
	return callerCommand(s, admin.TrustList, &cobra.Command{Args: cobra.NoArgs, Example: "\n--json"},
		func(c *cobra.Command) { c.Flags().BoolVar(&asJSON, "json", false, "print JSON") },
		func(c *cobra.Command, by admin.Caller, _ []string) error {
			all, err := admin.TrustList.Do(c.Context(), by, admin.None{})
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(s.out, all.Items)
			}
			t := newTable(s.out, "ID", "KIND", "ISSUER", "FROM", "STATE")
			for _, v := range all.Items {
				t.row(v.ID, string(v.Kind), v.Issuer, v.From, stateOfTrust(v))
			}
			return t.flush()
		})
}

func newTrustShow(s std) *cobra.Command {
	var asJSON bool
	return callerCommand(s, admin.TrustShow, &cobra.Command{
		Use: "ID", Args: cobra.ExactArgs(1), Example: "ci\nci --json",
	},
		func(c *cobra.Command) { c.Flags().BoolVar(&asJSON, "json", false, "print JSON") },
		func(c *cobra.Command, by admin.Caller, args []string) error {
			v, err := admin.TrustShow.Do(c.Context(), by, admin.TrustID{ID: args[0]})
			if err != nil {
				return err
			}
			if asJSON {
				for i := range v.Links {
					v.Links[i].UserName = ""
				}
				return printJSON(s.out, v)
			}
			t := newTable(s.out, "RULE", "VALUE")
			for _, row := range append(trustRows(v), linkRows(v.Links)...) {
				if row[1] != "" {
					t.row(row[0], row[1])
				}
			}
			return t.flush()
		})
}

// trustRows describes the rules that are set.
func trustRows(v admin.TrustEntry) (out [][2]string) {
	yes := func(b bool) string {
		if b {
			return "yes"
		}
		return ""
	}
	keys := "by the metadata of the issuer"
	switch {
	case v.JWKSURL != "":
		keys = v.JWKSURL
	case v.JWKSFile != "":
		keys = "file " + v.JWKSFile
	case v.JWKS != "":
		keys = "stored with the entry"
	}
	out = [][2]string{
		{"id", v.ID}, {"state", stateOfTrust(v)}, {"kind", string(v.Kind)}, {"issuer", v.Issuer}, {"preset", v.Preset},
		{"keys", keys}, {"networks", strings.Join(v.Networks, " ")},
		{"audience aliases", strings.Join(v.AudienceAliases, " ")},
	}
	for _, m := range v.Match {
		switch {
		case m.Expression != "":
			out = append(out, [2]string{"match", m.Expression})
		case m.Glob != "":
			out = append(out, [2]string{"match", m.Claim + " like " + m.Glob})
		default:
			out = append(out, [2]string{"match", m.Claim + " = " + m.Equals})
		}
	}
	return append(out, [][2]string{
		{"resources", strings.Join(v.Resources, " ")}, {"scopes", v.Scopes.String()}, {"max_ttl", v.MaxTTL},
		{"subject", v.Subject}, {"creates people", yes(v.CreatePeople)},
		{"email domains", strings.Join(v.EmailDomains, " ")}, {"SAML issuers", strings.Join(v.SAMLIssuers, " ")},
		{"resubmit", yes(v.Resubmit)}, {"needs jti", yes(v.RequireJTI != nil && *v.RequireJTI)},
		{"allows public clients", yes(v.AllowPublic)},
		{"event audience", strings.Join(v.EventAudience, " ")}, {"from", v.From},
	}...)
}

func newTrustRemove(s std) *cobra.Command {
	c := newTrustSwitch(s, admin.TrustRemove, "removed", true)
	c.SuggestFor = []string{"delete", "rm"}
	return c
}

func newTrustSwitch(
	s std, change admin.Operation[admin.TrustID, admin.TrustEntry], done string, ends bool,
) *cobra.Command {
	var sure confirmation
	var out answering
	return callerCommand(s, change, &cobra.Command{Use: "ID", Args: cobra.ExactArgs(1), Example: "ci"},
		func(c *cobra.Command) {
			out.add(c)
			if ends {
				sure.add(c)
			}
		}, func(c *cobra.Command, by admin.Caller, args []string) error {
			if ends {
				v, err := admin.TrustShow.Do(c.Context(), by, admin.TrustID{ID: args[0]})
				if err == nil {
					err = sure.ask(s, "This ends what rests on the assertions of "+v.ID+".")
				}
				if err != nil {
					return err
				}
			}
			v, err := change.Do(c.Context(), by, admin.TrustID{ID: args[0]})
			if err != nil {
				return err
			}
			return out.print(s, v, "%s %s", done, v.ID)
		})
}

func (a *app) trustChanged(ctx context.Context, id, what string) {
	a.Audit.Record(ctx, audit.TrustChanged, slog.String("trust", id), slog.String("what", what))
}

// endRemovedTrust revokes access that depends on trusted issuers removed from the configuration.
// The starting server marks the grants.
func (a *app) endRemovedTrust(ctx context.Context) error {
	removed, err := trust.EndRemoved(ctx, a.Store, a.Config.TrustEntries(), a.Parts().Now())
	for _, id := range removed {
		a.trustChanged(ctx, id, "removed from the configuration")
	}
	return err
}

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
	c.Long += "\nThe assertion is read from a file or from standard input. Exits with 1 if no entry matches."
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
	_, err := fmt.Fprintf(s.out, "accepted by %s, for %s\n", r.Entry, label.Printable(name))
	return err
}
