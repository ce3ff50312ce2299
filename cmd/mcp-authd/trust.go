package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/storage"
	"github.com/mcp-authd/mcp-authd/trust"
)

func newTrustCommand(s std) *cobra.Command {
	return group("trust", "Manage the issuers whose assertions are accepted in place of a sign-in",
		newTrustAdd(s), newTrustList(s), newTrustShow(s), newTrustTest(s),
		newTrustSwitch(s, "disable", "Stop believing an issuer, until it is enabled", true),
		newTrustSwitch(s, "enable", "Believe a disabled issuer again", false), newTrustRemove(s),
		newTrustLink(s), newTrustUnlink(s), newTrustIssue(s))
}

// trusted is a trust entry as it is printed.
type trusted struct {
	ID     string            `json:"id"`
	Kind   storage.TrustKind `json:"kind"`
	Issuer string            `json:"issuer"`
	storage.TrustRules
	MaxTTL     string     `json:"max_ttl,omitempty"`
	From       string     `json:"from"` // configuration, store
	CreatedAt  *time.Time `json:"created_at,omitempty"`
	DisabledAt *time.Time `json:"disabled_at,omitempty"`
	Problem    string     `json:"problem,omitempty"` // why it is not used
	// Links are the people of its issuer; trust show has them.
	Links []trustLinkView `json:"links,omitempty"`
}

func viewTrust(e storage.TrustEntry) trusted {
	full, err := trust.Check(e)
	v := trusted{
		ID: full.ID, Kind: full.Kind, Issuer: full.Issuer, TrustRules: full.TrustRules, From: "store",
	}
	if err != nil {
		v.Problem = err.Error()
	}
	if full.MaxTTL > 0 {
		v.MaxTTL = full.MaxTTL.String()
	}
	if e.Config {
		v.From = "configuration"
	}
	if !e.CreatedAt.IsZero() {
		v.CreatedAt = &e.CreatedAt
	}
	if !e.DisabledAt.IsZero() {
		v.DisabledAt = &e.DisabledAt
	}
	return v
}

// state says whether the entry is in use.
func (v trusted) state() string {
	switch {
	case v.Problem != "":
		return "not used: " + v.Problem
	case v.DisabledAt != nil:
		return "disabled"
	default:
		return "in use"
	}
}

// trustEntries are those of the configuration and of the store, in the order in which they are tried.
func (a *app) trustEntries(ctx context.Context) (out []storage.TrustEntry, err error) {
	stored, err := a.store.ListTrust(ctx)
	if err != nil {
		return nil, err
	}
	out = a.config.TrustEntries()
	for _, e := range stored {
		if !e.Mark() {
			out = append(out, e)
			continue
		}
		for i := range out {
			if out[i].Config && out[i].ID == e.ID {
				out[i].DisabledAt = e.DisabledAt
			}
		}
	}
	return out, nil
}

func (a *app) trustEntry(ctx context.Context, id string) (storage.TrustEntry, error) {
	all, err := a.trustEntries(ctx)
	if err != nil {
		return storage.TrustEntry{}, err
	}
	for _, e := range all {
		if e.ID == id {
			return e, nil
		}
	}
	return storage.TrustEntry{}, fmt.Errorf("there is no trust entry %q; see: mcp-authd trust list", printable(id))
}

func newTrustList(s std) *cobra.Command {
	var asJSON bool
	return storeCommand(s, &cobra.Command{
		Use: "list", Short: "List the issuers that are trusted", Args: cobra.NoArgs,
		Long:    "Lists the trust entries, those of the configuration first: they are tried in this order.",
		Example: "  mcp-authd trust list\n  mcp-authd trust list --json",
	}, func(c *cobra.Command) { c.Flags().BoolVar(&asJSON, "json", false, "print JSON") },
		func(c *cobra.Command, a *app, _ []string) error {
			all, err := a.trustEntries(c.Context())
			if err != nil {
				return err
			}
			views := make([]trusted, 0, len(all))
			for _, e := range all {
				views = append(views, viewTrust(e))
			}
			if asJSON {
				return printJSON(s.out, views)
			}
			t := newTable(s.out, "ID", "KIND", "ISSUER", "FROM", "STATE")
			for _, v := range views {
				t.row(v.ID, string(v.Kind), v.Issuer, v.From, v.state())
			}
			return t.flush()
		})
}

func newTrustShow(s std) *cobra.Command {
	var asJSON bool
	return storeCommand(s, &cobra.Command{
		Use: "show ID", Short: "Show a trust entry with what its preset sets", Args: cobra.ExactArgs(1),
		Long: "Shows a trust entry with what its preset sets, and the people of its issuer: which account they have\n" +
			"here, and how that was found out.",
		Example: "  mcp-authd trust show ci\n  mcp-authd trust show ci --json",
	}, func(c *cobra.Command) { c.Flags().BoolVar(&asJSON, "json", false, "print JSON") },
		func(c *cobra.Command, a *app, args []string) error {
			e, err := a.trustEntry(c.Context(), args[0])
			if err != nil {
				return err
			}
			v := viewTrust(e)
			if v.Links, err = a.linksOf(c.Context(), v); err != nil {
				return err
			}
			if asJSON {
				return printJSON(s.out, v)
			}
			t := newTable(s.out, "RULE", "VALUE")
			for _, row := range append(v.rows(), linkRows(c.Context(), v.Links, a.names())...) {
				if row[1] != "" {
					t.row(row[0], row[1])
				}
			}
			return t.flush()
		})
}

// rows are the rules in words. Those that are empty are left out.
func (v trusted) rows() (out [][2]string) {
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
		{"id", v.ID}, {"state", v.state()}, {"kind", string(v.Kind)}, {"issuer", v.Issuer}, {"preset", v.Preset},
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

func newTrustSwitch(s std, verb, short string, disable bool) *cobra.Command {
	var sure confirmation
	long := "Believes the assertions of a disabled entry again. What ended with it does not come back."
	if disable {
		long = "Accepts no assertions by an entry any more, of the store or of the configuration, and ends what\n" +
			"rests on it."
	}
	return storeCommand(s, &cobra.Command{
		Use: verb + " ID", Short: short, Args: cobra.ExactArgs(1), Long: long,
		Example: "  mcp-authd trust " + verb + " ci",
	}, func(c *cobra.Command) {
		if disable {
			sure.add(c)
		}
	}, func(c *cobra.Command, a *app, args []string) error {
		e, err := a.trustEntry(c.Context(), args[0])
		if err != nil {
			return err
		}
		if disable {
			if err := sure.ask(s, "This ends what rests on the assertions of "+e.ID+"."); err != nil {
				return err
			}
			err = a.store.DisableTrust(c.Context(), e.ID, time.Now())
		} else {
			err = a.store.EnableTrust(c.Context(), e.ID)
		}
		if errors.Is(err, storage.ErrNotFound) {
			err = nil // of the configuration, and not disabled
		}
		if err != nil {
			return err
		}
		a.trustChanged(c.Context(), e.ID, verb+"d")
		_, err = fmt.Fprintf(s.out, "%sd %s\n", verb, e.ID)
		return errors.Join(err, a.followCuts(c.Context()))
	})
}

func newTrustRemove(s std) *cobra.Command {
	var sure confirmation
	return storeCommand(s, &cobra.Command{
		Use: "remove ID", SuggestFor: []string{"delete", "rm"}, Short: "Remove a trust entry of the store",
		Long:    "Removes a trust entry and ends what rests on it. Asks on a terminal.",
		Example: "  mcp-authd trust remove ci", Args: cobra.ExactArgs(1),
	}, sure.add, func(c *cobra.Command, a *app, args []string) error {
		e, err := a.trustEntry(c.Context(), args[0])
		switch {
		case err != nil:
			return err
		case e.Config:
			return fmt.Errorf("%s is in the configuration (%s): remove it there, or disable it here", e.ID,
				a.configSource())
		}
		if err := sure.ask(s, "This ends what rests on the assertions of "+e.ID+"."); err != nil {
			return err
		}
		if err := a.store.RemoveTrust(c.Context(), e.ID, time.Now()); err != nil {
			return err
		}
		a.trustChanged(c.Context(), e.ID, "removed")
		_, err = fmt.Fprintf(s.out, "removed %s\n", e.ID)
		return errors.Join(err, a.followCuts(c.Context()))
	})
}

func (a *app) trustChanged(ctx context.Context, id, what string) {
	a.audit.Record(ctx, audit.TrustChanged, slog.String("trust", id), slog.String("what", what))
}

// endRemovedTrust ends what rests on entries that the configuration has no more. The server that starts
// marks their grants as revoked.
func (a *app) endRemovedTrust(ctx context.Context) error {
	removed, err := trust.EndRemoved(ctx, a.store, a.config.TrustEntries(), a.parts().Now())
	for _, id := range removed {
		a.trustChanged(ctx, id, "removed from the configuration")
	}
	return err
}
