package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/label"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/trust"
)

// trustFlags describe a trusted issuer.
type trustFlags struct {
	rules               storage.TrustRules
	kind, issuer, keys  string
	scopes              []string
	equals, globs, exps []string
	withoutJTI          bool
	json                bool
}

func (f *trustFlags) add(c *cobra.Command) {
	r, flags := &f.rules, c.Flags()
	flags.StringVar(&r.Preset, "preset", "", "platform: "+strings.Join(trust.Presets(), ", "))
	flags.StringToStringVar(&r.Parameters, "set", nil, "parameter of the preset; repeat for more")
	flags.StringVar(&f.kind, "kind", "", "enterprise or workload (default: as in the preset)")
	flags.StringVar(&f.issuer, "issuer", "", "iss of its assertions (default: as in the preset)")
	flags.StringVar(&r.JWKSURL, "jwks-url", "", "URL of its keys (default: from its metadata)")
	flags.StringVar(&r.JWKSFile, "jwks-file", "", "file with its keys, which each replica reads")
	flags.StringVar(&f.keys, "jwks", "", "file with its keys, which are copied to the store")
	flags.StringVar(&r.CAFile, "ca-file", "", "CA certificates for the server at --jwks-url")
	flags.StringVar(&r.TokenFile, "token-file", "", "file with a bearer token for --jwks-url")
	flags.StringArrayVar(&r.Networks, "network", nil, "private network from which keys may be fetched; repeat for more")
	flags.StringArrayVar(&r.AudienceAliases, "audience-alias", nil, "another aud that names this server; repeat for more")
	flags.StringArrayVar(&f.equals, "match", nil, "claim that assertions must have; repeat for more")
	flags.StringArrayVar(&f.globs, "match-glob", nil, "pattern that a claim must match: * within a part, ** across parts; repeat for more")
	flags.StringArrayVar(&f.exps, "match-expression", nil, "condition that the claims must meet; repeat for more")
	flags.StringArrayVar(&r.Resources, "resource", nil, "MCP server that tokens may be for (default: all); repeat for more")
	flags.StringArrayVar(&f.scopes, "scope", nil, "scope that tokens may have (default: all); repeat for more")
	flags.DurationVar(&r.MaxTTL, "max-ttl", 0, "maximum lifetime of an assertion and of its token (default: 1h)")
	flags.StringVar(&r.Subject, "subject", "", "name of a workload, or of an account that it creates, with {{.claim}} in it")
	flags.BoolVar(&r.CreatePeople, "create-people", false, "create accounts for unknown users")
	flags.StringArrayVar(&r.EmailDomains, "email-domain", nil, "mail domain whose addresses it may assert; repeat for more")
	flags.StringArrayVar(&r.SAMLIssuers, "saml-issuer", nil, "SAML issuer of its subjects; repeat for more")
	flags.BoolVar(&r.Resubmit, "resubmit", false, "an assertion may be used again until it expires")
	flags.BoolVar(&f.withoutJTI, "without-jti", false, "assertions need no jti, and are valid for ten minutes at most")
	flags.BoolVar(&r.AllowPublic, "allow-public", false, "clients without credentials may present assertions")
	flags.StringArrayVar(&r.EventAudience, "event-audience", nil, "accept its security events with this aud; repeat for more")
	flags.BoolVar(&f.json, "json", false, "print the entry as JSON")
}

// entry returns the entry that the flags describe.
func (f *trustFlags) entry(id string) (admin.NewTrust, error) {
	in := admin.NewTrust{
		ID: id, Kind: storage.TrustKind(f.kind), Issuer: f.issuer, TrustRules: f.rules,
		MaxTTL: storage.Age(f.rules.MaxTTL),
	}
	in.Scopes = f.scopes
	if f.withoutJTI {
		in.RequireJTI = new(bool)
	}
	if f.keys != "" {
		b, err := os.ReadFile(f.keys)
		if err != nil {
			return in, err
		}
		in.JWKS = string(b)
	}
	return in, f.matchers(&in.TrustRules)
}

// matchers adds the rules about claims.
func (f *trustFlags) matchers(r *storage.TrustRules) error {
	for _, flag := range []struct {
		name   string
		values []string
		rule   func(claim, value string) storage.TrustMatch
	}{
		{"match", f.equals, func(claim, value string) storage.TrustMatch {
			return storage.TrustMatch{Claim: claim, Equals: value}
		}},
		{"match-glob", f.globs, func(claim, value string) storage.TrustMatch {
			return storage.TrustMatch{Claim: claim, Glob: value}
		}},
	} {
		for _, given := range flag.values {
			claim, value, ok := strings.Cut(given, "=")
			if !ok {
				return fmt.Errorf("--%s %s: it is CLAIM=VALUE", flag.name, label.Printable(given))
			}
			r.Match = append(r.Match, flag.rule(claim, value))
		}
	}
	for _, expression := range f.exps {
		r.Match = append(r.Match, storage.TrustMatch{Expression: expression})
	}
	return nil
}

func newTrustAdd(s std) *cobra.Command {
	var f trustFlags
	return callerCommand(s, admin.TrustAdd, &cobra.Command{
		Use: "ID", Args: cobra.ExactArgs(1),
		Example: "ci --preset github-actions --set repository=o/r --set ref=refs/heads/main --resource https://mcp.example.com/mcp\n" +
			"company --preset okta --set domain=company.okta.com --create-people --email-domain company.com\n" +
			"pods --preset kubernetes --issuer https://kubernetes.default.svc --jwks keys.json --set namespace=prod --set service_account=bot",
	}, f.add, func(c *cobra.Command, by admin.Caller, args []string) error {
		in, err := f.entry(args[0])
		if err != nil {
			return fmt.Errorf("%w; nothing was changed", err)
		}
		e, err := admin.TrustAdd.Do(c.Context(), by, in)
		if err != nil {
			return err
		}
		for _, w := range e.Warnings {
			fmt.Fprintf(s.err, "mcp-authd: warning: %s: %s\n", e.ID, label.Printable(w))
		}
		if f.json {
			return printJSON(s.out, e)
		}
		_, err = fmt.Fprintf(s.out, "added %s, which trusts %s\n", e.ID, label.Printable(e.Issuer))
		return err
	})
}

// trustLinksShown limits the links that trust show prints, because an issuer may know a whole
// company.
const trustLinksShown = 100

// nameFlags selects one of a user's names.
type nameFlags struct{ tenant, saml string }

func (f *nameFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.tenant, "tenant", "", "tenant at the issuer, as in the claim tenant")
	c.Flags().StringVar(&f.saml, "saml-issuer", "", "SUBJECT is a name identifier of this SAML issuer of the entry")
}

// person parses ENTRY USER [SUBJECT].
func (f *nameFlags) person(args []string) (admin.PersonOfIssuer, error) {
	p := admin.PersonOfIssuer{ID: args[0], User: args[1], Tenant: f.tenant, SAMLIssuer: f.saml}
	if len(args) == 3 {
		if p.Subject = args[2]; p.Subject == "" {
			return p, errors.New("SUBJECT is empty")
		}
	}
	return p, nil
}

func newTrustLink(s std) *cobra.Command {
	var f nameFlags
	var asJSON bool
	return callerCommand(s, admin.TrustLinkTo, &cobra.Command{
		Use: "ENTRY USER [SUBJECT]", Args: cobra.RangeArgs(2, 3),
		Example: "company alice 00u1a2b3c4\ncompany alice 00u1a2b3c4 --tenant acme\n" +
			"company alice alice@company.com --saml-issuer https://saml.company.com",
	}, func(c *cobra.Command) {
		f.add(c)
		c.Flags().BoolVar(&asJSON, "json", false, "print the link as JSON")
	}, func(c *cobra.Command, by admin.Caller, args []string) error {
		p, err := f.person(args)
		if err != nil {
			return err
		}
		l, err := admin.TrustLinkTo.Do(c.Context(), by, p)
		if err != nil {
			return err
		}
		if asJSON {
			return printJSON(s.out, l)
		}
		_, err = fmt.Fprintf(s.out, "linked %s of %s to %s\n", label.Printable(l.Subject), p.ID,
			label.Printable(l.UserName))
		return err
	})
}

func newTrustUnlink(s std) *cobra.Command {
	var sure confirmation
	var f nameFlags
	var asJSON bool
	return callerCommand(s, admin.TrustUnlink, &cobra.Command{
		Use: "ENTRY USER [SUBJECT]", Args: cobra.RangeArgs(2, 3),
		Example: "company alice\ncompany alice 00u1a2b3c4 --tenant acme",
	}, func(c *cobra.Command) {
		f.add(c)
		sure.add(c)
		c.Flags().BoolVar(&asJSON, "json", false, "print the removed links as JSON")
	}, func(c *cobra.Command, by admin.Caller, args []string) error {
		p, err := f.person(args)
		if err != nil {
			return err
		}
		u, err := admin.UserShow.Do(c.Context(), by, admin.UserName{Name: p.User})
		if err != nil {
			return err
		}
		if err := sure.ask(s, "This ends each grant of "+u.Name+" that rests on assertions."); err != nil {
			return err
		}
		gone, err := admin.TrustUnlink.Do(c.Context(), by, p)
		if err != nil {
			return err
		}
		if asJSON {
			return printJSON(s.out, gone.Items)
		}
		for _, l := range gone.Items {
			if _, err := fmt.Fprintf(s.out, "unlinked %s of %s from %s\n", label.Printable(l.Subject), p.ID,
				label.Printable(l.UserName)); err != nil {
				return err
			}
		}
		return nil
	})
}

// linkRows describes links, and says if there are more.
func linkRows(all []admin.TrustLink) (out [][2]string) {
	for _, l := range all[:min(len(all), trustLinksShown)] {
		of := []string{l.Subject, "is", cmp.Or(l.UserName, l.User) + ",", "by", string(l.By)}
		if l.Tenant != "" {
			of = slices.Insert(of, 1, "of tenant", l.Tenant)
		}
		out = append(out, [2]string{"person", strings.Join(of, " ")})
	}
	if len(all) > trustLinksShown {
		out = append(out, [2]string{"person", "and more: trust show --json has up to a thousand"})
	}
	return out
}
