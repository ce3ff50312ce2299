package main

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

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
		"with --upstream: tool, or prefix with '*', and, after '=', the scopes it needs; repeat for more"+replace)
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
