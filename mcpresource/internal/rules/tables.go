package rules

import (
	"slices"
	"strings"

	"github.com/mcp-authd/mcp-authd/mcpresource/internal/message"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// compiled holds the tables of Rules in a form for fast lookup: a list of 500 tools needs 500
// lookups. [Rules.Require] defines the results.
type compiled struct {
	*Rules
	base, tools, prompts oauth.Scopes // required for all operations, or all of that kind
	methods              names
	tool, prompt         names
	folded, opened       prefixes // of resources, in the two forms of lookupURI
	denyResources        []denial
}

func Compile(r *Rules) *compiled {
	c := &compiled{Rules: r, base: r.Base, methods: namesOf(r.Methods, r.Base)}
	c.tools, c.prompts = c.ofMethod("tools/call"), c.ofMethod("prompts/get")
	c.tool, c.prompt = namesOf(r.Tools, c.tools), namesOf(r.Prompts, c.prompts)
	c.folded, c.opened = prefixesOf(r.Resources, foldHost), prefixesOf(r.Resources, asOpened)
	for _, pattern := range r.DenyResources {
		c.denyResources = append(c.denyResources, denialOf(pattern))
	}
	return c
}

// Require implements Policy.
func (c *compiled) Require(op Operation) Requirement {
	clearance := c.clearance(op)
	need := c.byTables(op, clearance.needed)
	c.finish(op, &need, &clearance)
	return need
}

func (c *compiled) byTables(op Operation, known bool) Requirement {
	isResource := message.IsResource(op.Method)
	switch {
	case isResource && c.deniesResource(op.Name), c.deniesNamed(op):
		return Requirement{Deny: true}
	case !known && slices.Contains(c.Public, op.Method):
		return Requirement{Public: true}
	case op.Method == "tools/call":
		return Requirement{Scopes: c.needs(&c.tool, op.Name, c.tools), Direct: c.direct(op)}
	case op.Method == "prompts/get":
		return Requirement{Scopes: c.needs(&c.prompt, op.Name, c.prompts)}
	case !isResource:
		return Requirement{Scopes: c.ofMethod(op.Method)}
	}
	need := c.ofMethod(op.Method)
	need = add(need, c.listed(c.folded.lookup(op.Name)))
	return Requirement{Scopes: add(need, c.listed(c.opened.lookup(op.Name)))}
}

func (c *compiled) ofMethod(method string) oauth.Scopes {
	if need, ok := c.methods.lookup(method); ok {
		return need
	}
	return slices.Clip(c.base)
}

// needs returns the scopes for a name: from the table, else Default, in addition to the scopes of
// the method.
func (c *compiled) needs(of *names, name string, method oauth.Scopes) oauth.Scopes {
	if need, ok := of.lookup(name); ok {
		return need
	}
	return add(method, c.Default)
}

func (c *compiled) deniesResource(uri string) bool {
	if len(c.denyResources) == 0 {
		return false
	}
	folded, opened, lower := foldHost(uri), asOpened(uri), strings.ToLower(uri)
	for _, d := range c.denyResources {
		if d.anyCase && (Matches(d.folded, foldHost(lower)) || Matches(d.opened, asOpened(lower))) ||
			!d.anyCase && (Matches(d.folded, folded) || Matches(d.opened, opened)) {
			return true
		}
	}
	return false
}

// denial is a pattern of DenyResources in the forms that deniesURI uses.
type denial struct {
	folded, opened string
	anyCase        bool
}

func denialOf(pattern string) denial {
	anyCase := !strings.Contains(pattern, "://")
	if anyCase {
		pattern = strings.ToLower(pattern)
	}
	return denial{foldHost(pattern), asOpened(pattern), anyCase}
}

// add returns the union, or s itself if it contains all of more.
func add(s oauth.Scopes, more []string) oauth.Scopes {
	if s.Has(more...) {
		return s
	}
	return s.Union(more)
}

// names is a lookup table by name.
type names struct {
	exact    map[string]oauth.Scopes // including the scopes that everything needs
	patterns []rule                  // most specific first
	base     oauth.Scopes
}

type rule struct {
	pattern string
	prefix  string   // before the first "*"
	says    int      // number of characters other than "*"
	scopes  []string // of the table
	need    oauth.Scopes
}

// matches reports whether a name matches the pattern. Most names fail on the prefix, which is cheap
// to compare.
func (r *rule) matches(name string) bool {
	return strings.HasPrefix(name, r.prefix) && Matches(r.pattern, name)
}

func namesOf(table map[string][]string, base oauth.Scopes) names {
	n := names{exact: make(map[string]oauth.Scopes, len(table)), base: base}
	for key, scopes := range table {
		need := slices.Clip(base.Union(scopes))
		n.exact[key] = need
		if prefix, _, glob := strings.Cut(key, "*"); glob {
			says := len(key) - strings.Count(key, "*")
			n.patterns = append(n.patterns, rule{key, prefix, says, scopes, need})
		}
	}
	slices.SortFunc(n.patterns, mostFirst)
	return n
}

func mostFirst(a, b rule) int {
	if a.says != b.says {
		return b.says - a.says
	}
	return strings.Compare(a.pattern, b.pattern)
}

// lookup returns the scopes for a name, with the same result as lookup of the table.
func (n *names) lookup(name string) (oauth.Scopes, bool) {
	if need, ok := n.exact[name]; ok {
		return need, true
	}
	for i := range n.patterns {
		first := &n.patterns[i]
		if !first.matches(name) {
			continue
		}
		found, several := first.scopes, false
		for _, r := range n.patterns[i+1:] {
			if r.says < first.says {
				break
			}
			if r.matches(name) {
				_, found = better(r.says, found, r.says, r.scopes)
				several = true
			}
		}
		if several {
			return n.base.Union(found), true
		}
		return first.need, true
	}
	return nil, false
}

// prefixes is a lookup table by URI, in one form.
type prefixes struct {
	as       func(string) string
	exact    map[string][]string
	patterns []rule // longest first
}

func prefixesOf(table map[string][]string, as func(string) string) prefixes {
	p := prefixes{as: as, exact: make(map[string][]string, len(table))}
	for key, scopes := range table {
		key = as(key)
		if have, ok := p.exact[key]; ok { // keys that are equal in this form
			_, scopes = better(0, have, 0, scopes)
		}
		p.exact[key] = scopes
	}
	for key, scopes := range p.exact {
		if prefix, glob := strings.CutSuffix(key, "*"); glob {
			p.patterns = append(p.patterns, rule{pattern: prefix, says: len(prefix), scopes: scopes})
		}
	}
	slices.SortFunc(p.patterns, mostFirst)
	return p
}

// lookup returns the scopes for a URI, with the same result as lookupURI of the table.
func (p *prefixes) lookup(uri string) ([]string, bool) {
	if len(p.exact) == 0 {
		return nil, false
	}
	uri = p.as(uri)
	if scopes, ok := p.exact[uri]; ok {
		return scopes, true
	}
	for _, r := range p.patterns {
		if strings.HasPrefix(uri, r.pattern) {
			return r.scopes, true
		}
	}
	return nil, false
}
