package mcpresource

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// Operation is one JSON-RPC request or notification as the policy sees it. What leads
// to a prompt or resource by another way counts as both: after completion/complete
// comes the prompts/get or resources/read of what it completes, and after
// subscriptions/listen the resources/subscribe of each URI.
type Operation struct {
	Method    string          // such as "tools/call"; "" for a response or a GET
	Name      string          // params.name, or params.uri of resource methods
	Arguments json.RawMessage // params.arguments, nil when absent
}

// Requirement is what an operation needs.
type Requirement struct {
	Scopes []string // all of them
	Deny   bool     // nobody may, whatever their scopes
	Public bool     // no token is needed
}

// Policy decides what an operation needs. It must be safe for concurrent use.
type Policy interface{ Require(Operation) Requirement }

// PolicyFunc is a function that is a Policy.
type PolicyFunc func(Operation) Requirement

// Require calls f.
func (f PolicyFunc) Require(op Operation) Requirement { return f(op) }

// Rules is a Policy made of tables. A key is an exact name, or a prefix that ends in
// "*"; the exact name goes first, then the longest prefix. Do not change it after New.
type Rules struct {
	// Base is needed for everything that is not Public, and is what a client is told
	// to ask for first.
	Base []string
	// Default is needed, beyond Base, by tools, prompts and resources that no table
	// names, so that a new one is not open by oversight.
	Default []string
	// Methods, Tools, Prompts and Resources (by URI) name what is needed beyond Base.
	Methods, Tools, Prompts, Resources map[string][]string
	// Deny lists tools that nobody may call.
	Deny []string
	// Implies is the scope hierarchy: who holds the key holds the values, and what
	// these imply in turn.
	Implies map[string][]string
	// Public methods need no token; they should show nothing about anybody.
	Public []string
}

// Require implements Policy.
func (r *Rules) Require(op Operation) Requirement {
	if slices.Contains(r.Public, op.Method) {
		return Requirement{Public: true}
	}
	need := oauth.Scopes(r.Base)
	if own, ok := lookup(r.Methods, op.Method); ok {
		need = need.Union(own)
	}
	table, named := r.table(op.Method)
	if !named {
		return Requirement{Scopes: need}
	}
	if op.Method == "tools/call" && slices.ContainsFunc(r.Deny, func(d string) bool { return matches(d, op.Name) }) {
		return Requirement{Deny: true}
	}
	find := lookup
	if isResource(op.Method) {
		find = lookupURI
	}
	own, ok := find(table, op.Name)
	if !ok {
		own = r.Default
	}
	return Requirement{Scopes: need.Union(own)}
}

func (r *Rules) table(method string) (table map[string][]string, named bool) {
	switch {
	case method == "tools/call":
		return r.Tools, true
	case method == "prompts/get":
		return r.Prompts, true
	case isResource(method):
		return r.Resources, true
	}
	return nil, false
}

func lookup(table map[string][]string, name string) ([]string, bool) {
	if s, ok := table[name]; ok {
		return s, true
	}
	best := -1
	var found []string
	for key, s := range table {
		if prefix, glob := strings.CutSuffix(key, "*"); glob && strings.HasPrefix(name, prefix) && len(prefix) > best {
			best, found = len(prefix), s
		}
	}
	return found, best >= 0
}

func matches(pattern, name string) bool {
	prefix, glob := strings.CutSuffix(pattern, "*")
	return pattern == name || glob && strings.HasPrefix(name, prefix)
}

// expand returns the scopes that a holder of s has by the hierarchy.
func (r *Rules) expand(s oauth.Scopes) oauth.Scopes {
	if len(r.Implies) == 0 {
		return s
	}
	out := slices.Clone(s)
	for i := 0; i < len(out); i++ {
		out = out.Union(r.Implies[out[i]])
	}
	return out
}

// ScopeError says which scopes an operation needs and the caller lacks.
type ScopeError struct {
	Required oauth.Scopes // everything the operation needs
	Missing  oauth.Scopes // what the caller lacks of it
	Denied   bool         // no scope would help
}

// Error implements error.
func (e *ScopeError) Error() string {
	if e.Denied {
		return "mcpresource: operation is denied"
	}
	return "mcpresource: scope needed: " + e.Required.String()
}
