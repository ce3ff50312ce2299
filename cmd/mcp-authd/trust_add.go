package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/storage"
	"github.com/mcp-authd/mcp-authd/trust"
)

// trustFlags describe a trust entry.
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
	flags.StringVar(&f.kind, "kind", "", "enterprise or workload (default: that of the preset)")
	flags.StringVar(&f.issuer, "issuer", "", "iss of its assertions (default: that of the preset)")
	flags.StringVar(&r.JWKSURL, "jwks-url", "", "where its keys are (default: as its metadata say)")
	flags.StringVar(&r.JWKSFile, "jwks-file", "", "a file with its keys, which each replica reads")
	flags.StringVar(&f.keys, "jwks", "", "a file with its keys, which are stored as they are now")
	flags.StringVar(&r.CAFile, "ca-file", "", "certificates by which the server at --jwks-url is known")
	flags.StringVar(&r.TokenFile, "token-file", "", "a bearer token that is sent to --jwks-url")
	flags.StringArrayVar(&r.Networks, "network", nil, "private network in which keys may be fetched; repeat for more")
	flags.StringArrayVar(&r.AudienceAliases, "audience-alias", nil, "further aud that means this server; repeat for more")
	flags.StringArrayVar(&f.equals, "match", nil, "CLAIM=VALUE that has to hold; repeat for more")
	flags.StringArrayVar(&f.globs, "match-glob", nil, "CLAIM=PATTERN, with * within a part and ** across; repeat for more")
	flags.StringArrayVar(&f.exps, "match-expression", nil, "condition over claims; repeat for more")
	flags.StringArrayVar(&r.Resources, "resource", nil, "MCP server that tokens may be for (default: each); repeat for more")
	flags.StringArrayVar(&f.scopes, "scope", nil, "scope that tokens may have (default: each); repeat for more")
	flags.DurationVar(&r.MaxTTL, "max-ttl", 0, "how long an assertion may be valid, and its token (default 1h)")
	flags.StringVar(&r.Subject, "subject", "", "name of a workload, or of an account that it creates, with {{.claim}} in it")
	flags.BoolVar(&r.CreatePeople, "create-people", false, "people who are not known get an account")
	flags.StringArrayVar(&r.EmailDomains, "email-domain", nil, "domain whose addresses it may speak for; repeat for more")
	flags.StringArrayVar(&r.SAMLIssuers, "saml-issuer", nil, "issuer of SAML subjects that it may name; repeat for more")
	flags.BoolVar(&r.Resubmit, "resubmit", false, "an assertion may be used again until it expires")
	flags.BoolVar(&f.withoutJTI, "without-jti", false, "assertions need no jti, and are valid for ten minutes at most")
	flags.BoolVar(&r.AllowPublic, "allow-public", false, "clients without credentials may present assertions")
	flags.StringArrayVar(&r.EventAudience, "event-audience", nil, "aud of its security events, which are believed; repeat for more")
	flags.BoolVar(&f.json, "json", false, "print the entry as JSON")
}

// entry is the entry that the flags describe, as it is stored: what its preset sets is not in it, but
// for kind and issuer.
func (f *trustFlags) entry(id string) (storage.TrustEntry, error) {
	e := storage.TrustEntry{
		ID: id, Kind: storage.TrustKind(f.kind), Issuer: f.issuer, TrustRules: f.rules,
		CreatedAt: time.Now().UTC().Truncate(time.Millisecond),
	}
	e.Scopes = f.scopes
	if f.withoutJTI {
		e.RequireJTI = new(bool)
	}
	if f.keys != "" {
		b, err := os.ReadFile(f.keys)
		if err != nil {
			return e, err
		}
		e.JWKS = string(b)
	}
	if err := f.matchers(&e); err != nil {
		return e, err
	}
	full, err := trust.Check(e)
	e.Kind, e.Issuer = full.Kind, full.Issuer
	return e, err
}

// matchers adds the rules about claims.
func (f *trustFlags) matchers(e *storage.TrustEntry) error {
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
			e.Match = append(e.Match, flag.rule(claim, value))
		}
	}
	for _, expression := range f.exps {
		e.Match = append(e.Match, storage.TrustMatch{Expression: expression})
	}
	return nil
}

func newTrustAdd(s std) *cobra.Command {
	var f trustFlags
	return storeCommand(s, &cobra.Command{
		Use: "add ID", Short: "Trust an issuer", Args: cobra.ExactArgs(1),
		Long: "Adds a trust entry: which assertions of an issuer are believed, and for what. Running servers see it\n" +
			"within seconds. Several entries of one issuer are alternatives: the first of which every rule holds\n" +
			"counts. A preset knows a platform, and its parameters say which of its programs are meant.",
		Example: "  mcp-authd trust add ci --preset github-actions --set repository=o/r --set ref=refs/heads/main --resource https://mcp.example.com/mcp\n" +
			"  mcp-authd trust add company --preset okta --set domain=company.okta.com --create-people --email-domain company.com\n" +
			"  mcp-authd trust add pods --preset kubernetes --issuer https://kubernetes.default.svc --jwks keys.json --set namespace=prod --set service_account=bot",
	}, f.add, func(c *cobra.Command, a *app, args []string) error {
		e, err := f.entry(args[0])
		if err != nil {
			return fmt.Errorf("%w; nothing was changed", err)
		}
		service, err := a.admin()
		if err != nil {
			return err
		}
		all, err := service.TrustEntries(c.Context())
		if err != nil {
			return err
		}
		for _, other := range all {
			if other.ID == e.ID {
				return fmt.Errorf("there is a trust entry %s already; nothing was changed", e.ID)
			}
		}
		us, err := a.knownIssuer(c.Context())
		if err != nil {
			return err
		}
		if err := trust.Fits(us, all, e); err != nil {
			return fmt.Errorf("%w; nothing was changed", err)
		}
		err = a.store.AddTrust(c.Context(), e)
		if errors.Is(err, storage.ErrExists) {
			return fmt.Errorf("there is a trust entry %s already, or the mark of one; nothing was changed", e.ID)
		}
		if err != nil {
			return err
		}
		a.trustChanged(c.Context(), e.ID, "added")
		for _, w := range trust.Warnings(e) {
			fmt.Fprintf(s.err, "mcp-authd: warning: %s: %s\n", e.ID, w)
		}
		if f.json {
			return printJSON(s.out, admin.TrustOf(e))
		}
		_, err = fmt.Fprintf(s.out, "added %s, which trusts %s\n", e.ID, printable(e.Issuer))
		return err
	})
}
