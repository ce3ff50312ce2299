package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/admin"
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
	flags.StringVar(&r.Preset, "preset", "", strings.Join(trust.Presets(), ", "))
	flags.StringToStringVar(&r.Parameters, "set", nil, "NAME=VALUE of the preset; repeat for more")
	flags.StringVar(&f.kind, "kind", "", "enterprise or workload (default: as in the preset)")
	flags.StringVar(&f.issuer, "issuer", "", "iss of its assertions (default: as in the preset)")
	flags.StringVar(&r.JWKSURL, "jwks-url", "", "URL of its keys (default: from its metadata)")
	flags.StringVar(&r.JWKSFile, "jwks-file", "", "a file with its keys, which each replica reads")
	flags.StringVar(&f.keys, "jwks", "", "a file with its keys, which are copied to the store")
	flags.StringVar(&r.CAFile, "ca-file", "", "CA certificates for the server at --jwks-url")
	flags.StringVar(&r.TokenFile, "token-file", "", "a bearer token that is sent to --jwks-url")
	flags.StringArrayVar(&r.Networks, "network", nil, "private network that keys may be fetched from; repeat for more")
	flags.StringArrayVar(&r.AudienceAliases, "audience-alias", nil, "additional aud that means this server; repeat for more")
	flags.StringArrayVar(&f.equals, "match", nil, "CLAIM=VALUE that has to hold; repeat for more")
	flags.StringArrayVar(&f.globs, "match-glob", nil, "CLAIM=PATTERN, with * within a part and ** across; repeat for more")
	flags.StringArrayVar(&f.exps, "match-expression", nil, "condition over claims; repeat for more")
	flags.StringArrayVar(&r.Resources, "resource", nil, "MCP server that tokens may be for (default: each); repeat for more")
	flags.StringArrayVar(&f.scopes, "scope", nil, "scope that tokens may have (default: each); repeat for more")
	flags.DurationVar(&r.MaxTTL, "max-ttl", 0, "maximum lifetime of an assertion and of its token (default 1h)")
	flags.StringVar(&r.Subject, "subject", "", "name of a workload, or of an account that it creates, with {{.claim}} in it")
	flags.BoolVar(&r.CreatePeople, "create-people", false, "create accounts for unknown users")
	flags.StringArrayVar(&r.EmailDomains, "email-domain", nil, "mail domain that it may assert addresses of; repeat for more")
	flags.StringArrayVar(&r.SAMLIssuers, "saml-issuer", nil, "SAML issuer that its subjects may be from; repeat for more")
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
				return fmt.Errorf("--%s %s: it is CLAIM=VALUE", flag.name, printable(given))
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
			fmt.Fprintf(s.err, "mcp-authd: warning: %s: %s\n", e.ID, printable(w))
		}
		if f.json {
			return printJSON(s.out, e)
		}
		_, err = fmt.Fprintf(s.out, "added %s, which trusts %s\n", e.ID, printable(e.Issuer))
		return err
	})
}
