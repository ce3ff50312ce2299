package main

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

func newResourceShow(s std) *cobra.Command {
	var asJSON bool
	return callerCommand(s, admin.ResourceShow, &cobra.Command{
		Use: "URL", Args: cobra.ExactArgs(1), Example: "https://mcp.example.com/mcp --json",
	}, func(c *cobra.Command) { c.Flags().BoolVar(&asJSON, "json", false, "print JSON") },
		func(c *cobra.Command, by admin.Caller, args []string) error {
			r, err := admin.ResourceShow.Do(c.Context(), by, admin.ResourceURL{URI: args[0]})
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(s.out, r)
			}
			printFields(s.out, "url", r.URI, "name", r.Name, "from", originOf(r), "dpop", string(r.DPoP),
				"upstream", r.Upstream)
			for _, alias := range r.Aliases {
				printFields(s.out, "alias", alias)
			}
			for _, sc := range r.Scopes {
				printFields(s.out, "scope", sc.Name+": "+sc.Description+marksOf(sc))
			}
			for _, rule := range r.Rules {
				printFields(s.out, "access", rule.Subject()+": "+rule.String())
			}
			if tools := toolsOf(r); tools != "" {
				printFields(s.out, "tools", tools)
			}
			return nil
		})
}

// marksOf returns the marks of a scope, in brackets.
func marksOf(sc storage.ScopeText) string {
	var marks []string
	for _, m := range []struct {
		on   bool
		text string
	}{
		{sc.Access != "", string(sc.Access)},
		{sc.EveryCall, "needed by every call"},
		{sc.Default && !sc.EveryCall, "asked for at the first sign-in"},
		{sc.Required, "required"},
		{sc.Dangerous, "dangerous"},
		{sc.ACR != "", "acr " + sc.ACR},
		{sc.MaxAge > 0, "signed in at most " + textOf(sc.MaxAge) + " ago"},
		{len(sc.Implies) > 0, "includes " + strings.Join(sc.Implies, " ")},
	} {
		if m.on {
			marks = append(marks, m.text)
		}
	}
	if len(marks) == 0 {
		return ""
	}
	return " (" + strings.Join(marks, ", ") + ")"
}

func textOf(a storage.Age) string {
	text, _ := a.MarshalText() // never fails
	return string(text)
}

func newResourceSet(s std) *cobra.Command {
	var f resourceFlags
	var sure confirmation
	c := callerCommand(s, admin.ResourceSet, &cobra.Command{
		Use: "URL", Args: cobra.ExactArgs(1),
		Example: "https://mcp.example.com/mcp --name \"Team notes\"\n" +
			"https://mcp.example.com/mcp --access notes:read=read --dangerous notes:delete\n" +
			"https://mcp.example.com/mcp --alias https://mcp.example.com/mcp@work\n" +
			"https://mcp.example.com/mcp --dpop required\n" +
			"https://auth.example.com/notes --upstream http://127.0.0.1:4000/mcp",
	}, func(c *cobra.Command) {
		sure.add(c)
		f.add(c, "default: as it is", "; \"\" for none", " (default: as they are); every call needs the first, if none has --every-call", nil)
		f.gateway.add(c, " (default: as it is); none takes it from the gateway",
			". The flags for tools replace all earlier rules; \"\" for none")
	},
		func(c *cobra.Command, by admin.Caller, args []string) error {
			r, err := admin.ResourceShow.Do(c.Context(), by, admin.ResourceURL{URI: args[0]})
			if err != nil {
				return err
			}
			change, err := f.change(c, args[0], r.Resource)
			if err != nil {
				return err
			}
			if change.Aliases != nil {
				if err := askForAliases(c.Context(), by, s, sure, r.Aliases, change.Aliases); err != nil {
					return err
				}
			}
			changed, err := admin.ResourceSet.Do(c.Context(), by, change)
			if err != nil {
				return err
			}
			return f.done(s, "changed", changed)
		})
	c.PreRunE = func(c *cobra.Command, _ []string) error {
		if f.name == "" && len(f.scopes) == 0 && !f.marks.given() && f.dpop == "" && !c.Flags().Changed("alias") &&
			!f.gateway.given(c) {
			return usageError{
				errors.New("say what to change with --name, --alias, --scope, --access, --required, --dangerous, --dpop, --upstream or --tool"),
				c.CommandPath(),
			}
		}
		return nil
	}
	return c
}

// change returns the changes of a resource from the flags. Marks apply to its existing scopes.
func (f *resourceFlags) change(c *cobra.Command, url string, r storage.Resource) (admin.ResourceChange, error) {
	in := admin.ResourceChange{URI: url, Name: f.name, DPoP: f.dpop, Upstream: f.gateway.upstream}
	if f.gateway.ruled(c) {
		var err error
		if in.ToolRules, err = f.gateway.rules(); err != nil {
			return in, err
		}
	}
	given, err := newResource(r.URI, f.name, f.scopes)
	if err != nil {
		return in, err
	}
	if len(f.scopes) > 0 {
		r.Scopes = given.Scopes
	}
	if err := f.marks.put(&r); err != nil {
		return in, err
	}
	if len(f.scopes) > 0 || f.marks.given() {
		in.Scopes = r.Scopes
	}
	if c.Flags().Changed("alias") {
		in.Aliases, err = f.aliasesOf(r.URI)
		if in.Aliases == nil {
			in.Aliases = []string{}
		}
	}
	return in, err
}

// askForAliases asks before removing aliases, and names the grants that end.
func askForAliases(
	ctx context.Context, by admin.Caller, s std, sure confirmation, before, after []string,
) error {
	gone := slices.DeleteFunc(slices.Clone(before), func(u string) bool { return slices.Contains(after, u) })
	if len(gone) == 0 {
		return nil
	}
	ends, err := grantsAt(ctx, by, gone)
	if err != nil {
		return err
	}
	return sure.ask(s, fmt.Sprintf("This removes %s, with %s.", strings.Join(gone, ", "), ends))
}

// grantsAt describes the number of live grants and users for any of the URLs.
func grantsAt(ctx context.Context, by admin.Caller, urls []string) (string, error) {
	var some []string
	for _, url := range urls {
		n, err := admin.GrantCounted.Do(ctx, by, admin.Which{Resource: url})
		if err != nil {
			return "", err
		}
		if n.Grants > 0 || n.More {
			some = append(some, ofPeople(n.GrantCount)+" for "+url)
		}
	}
	switch len(some) {
	case 0:
		return ofPeople(admin.GrantCount{}), nil
	case 1: // the URL is obvious or irrelevant
		text, _, _ := strings.Cut(some[0], " for ")
		return text, nil
	}
	return strings.Join(some, ", and "), nil
}

// aliasesOf returns the aliases from the flags.
func (f *resourceFlags) aliasesOf(uri string) ([]string, error) {
	given := slices.DeleteFunc(slices.Clone(f.aliases), func(a string) bool { return a == "" })
	return oauth.CanonicalAliases(uri, given)
}

func sameAliases(a, b storage.Resource) bool {
	return slices.Equal(slices.Sorted(slices.Values(a.Aliases)), slices.Sorted(slices.Values(b.Aliases)))
}

// withAliases returns text about the aliases of a resource, to follow its name.
func withAliases(r storage.Resource) string {
	if len(r.Aliases) == 0 {
		return ""
	}
	return ", the aliases " + strings.Join(r.Aliases, " ")
}

// gatewayFlags put an MCP server behind the gateway.
type gatewayFlags struct {
	upstream            string
	tools, deny, direct []string
}

// toolFlags are the names of the flags for tool rules.
var toolFlags = []string{"tool", "deny-tool", "direct-tool"}

func (f *gatewayFlags) add(c *cobra.Command, none, replace string) {
	c.Flags().StringVar(&f.upstream, "upstream", "",
		"URL where the gateway reaches it, such as http://127.0.0.1:3000/mcp; its public URL is then at the issuer"+none)
	c.Flags().StringArrayVar(&f.tools, "tool", nil,
		"with --upstream: tool, or prefix with '*', with the scopes that it needs; repeat for more"+replace)
	c.Flags().StringArrayVar(&f.deny, "deny-tool", nil,
		"with --upstream: tool, or prefix with '*', that nobody may call; repeat for more")
	c.Flags().StringArrayVar(&f.direct, "direct-tool", nil,
		"with --upstream: tool, or prefix with '*', that no sub-agent may call; repeat for more")
}

// given reports whether any of the flags was used.
func (f *gatewayFlags) given(c *cobra.Command) bool {
	return c.Flags().Changed("upstream") || f.ruled(c)
}

func (f *gatewayFlags) ruled(c *cobra.Command) bool {
	return slices.ContainsFunc(toolFlags, c.Flags().Changed)
}

// rules returns the tool rules from the flags. It is not nil.
func (f *gatewayFlags) rules() ([]storage.ToolRule, error) {
	out := []storage.ToolRule{}
	rule := func(name string) *storage.ToolRule {
		i := slices.IndexFunc(out, func(t storage.ToolRule) bool { return t.Name == name })
		if i < 0 {
			i, out = len(out), append(out, storage.ToolRule{Name: name})
		}
		return &out[i]
	}
	for _, t := range f.tools {
		name, scopes, ok := strings.Cut(t, "=")
		need := oauth.ParseScopes(scopes)
		switch {
		case t == "": // no rules
			continue
		case !ok || name == "" || len(need) == 0:
			return nil, fmt.Errorf("--tool %q is not of the form NAME=SCOPE", t)
		}
		r := rule(name)
		r.Scopes = oauth.Scopes(r.Scopes).Union(need)
	}
	for _, name := range f.deny {
		rule(name).Deny = true
	}
	for _, name := range f.direct {
		rule(name).Direct = true
	}
	return out, nil
}

// differ reports whether the flags ask for another upstream or other tool rules.
func (f *gatewayFlags) differ(c *cobra.Command, r admin.Resource) bool {
	rules, err := f.rules()
	return c.Flags().Changed("upstream") && r.Upstream != f.upstream || f.ruled(c) &&
		(err != nil || !reflect.DeepEqual(append([]storage.ToolRule{}, r.ToolRules...), rules))
}
