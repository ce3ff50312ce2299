// Package rules contains the requirements of operations.
package rules

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mcp-authd/mcp-authd/mcpresource/internal/message"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Requirement contains the conditions for an operation. The zero value requires any valid token.
type Requirement struct {
	Scopes []string // all are required
	Deny   bool     // refused for every caller, whatever their scopes
	// Reason is the sentence that callers get for Deny. Default: the operation is not permitted.
	Reason string
	Direct bool // refused for sub-agents of the application: see [Principal.Actors]
	Public bool // no token is required
	// Authentication states how the user of the token must have authenticated.
	Authentication Authentication
	// Clearance states which approval each call of a tool needs in addition.
	Clearance Clearance
}

// IsOpen reports whether no token is needed.
func IsOpen(r Requirement) bool { return r.Public && !r.Deny && !DemandsApproval(r.Clearance) }

// Policy returns the requirement of each operation. It must be safe for concurrent use.
type Policy interface{ Require(Operation) Requirement }

// Rules is a Policy of tables by method, tool, prompt and resource. Refine can also use the
// arguments, and Config.Check then checks the object. A caller who lacks a scope gets a challenge
// with all scopes that the message needs ([StepUp]).
//
// A key is an exact name or a pattern. In a pattern, "*" matches any text; for resources it must be
// the last character. An exact name takes precedence, then the pattern with the most characters
// other than "*". Equally long patterns require the scopes of all. Do not change Rules after New.
type Rules struct {
	// Base is required for everything that is not Public. Clients request it first.
	Base []string
	// Default is required in addition to Base for tools, prompts and resources that are in no
	// table, so that new ones are not open by mistake.
	Default []string
	// Methods, Tools, Prompts and Resources (by URI) are the scopes required in addition to Base.
	Methods, Tools, Prompts, Resources map[string][]string
	// Deny lists tools that no caller may call, by name or pattern. The others do the same for
	// methods, prompts and resources. They override Public and the tables; Refine overrides them.
	Deny, DenyMethods, DenyPrompts, DenyResources []string
	// Held, if not nil, denies tools while the server runs. It returns the reason why no caller may
	// call a tool at present (Requirement.Reason), or "".
	Held func(tool string) (reason string)
	// Direct lists tools, by name or pattern, that only the application itself may call, and no
	// sub-agent that it delegated to. A sub-agent's token names an actor (RFC 8693 §4.1).
	Direct []string
	// Implies is the scope hierarchy: a token with the key also has the values, and the scopes that
	// these imply.
	Implies map[string][]string
	// Authentication states, for a scope, how a user must have authenticated to use it (RFC 9470).
	// If the authorization server has the same rule, as mcp-authd can, it also works for clients
	// that only know scopes: see [Authentication].
	Authentication map[string]Authentication
	// Clearances lists the tools, by name or pattern, whose calls each need an approval in addition
	// to their scopes. If several patterns are equally long, all must be satisfied.
	Clearances map[string]Clearance
	// Public methods require no token. They should reveal nothing about any user. A call that needs
	// approval requires a token nevertheless.
	Public []string
	// Refine, if not nil, decides last. It gets the requirement of the tables, and can read the
	// arguments with Operation.Args.
	Refine func(op Operation, need Requirement) Requirement
}

// Require implements Policy.
func (r *Rules) Require(op Operation) Requirement {
	clearance := r.clearance(op)
	need := r.byTables(op, clearance.needed)
	r.finish(op, &need, &clearance)
	return need
}

// finish applies the rules that follow the tables.
func (r *Rules) finish(op Operation, need *Requirement, clearance *tabled) {
	if clearance.needed {
		need.Clearance, need.Deny = clearance.Clearance, need.Deny || clearance.impossible
	}
	if r.Held != nil && !need.Deny && op.Method == "tools/call" {
		if reason := r.Held(op.Name); reason != "" {
			*need = Requirement{Deny: true, Reason: reason}
		}
	}
	if r.Refine != nil {
		need.Scopes = slices.Clone(need.Scopes) // Refine must not change the slices of the tables
		*need = r.Refine(op, *need)
	}
	if len(r.Authentication) == 0 {
		return
	}
	for _, scope := range need.Scopes { // includes scopes added by Refine, which can only strengthen the authentication
		need.Authentication = BothProofs(need.Authentication, r.Authentication[scope])
	}
}

// byTables returns the requirement of the scope tables. If known is true, the caller must have a
// token.
func (r *Rules) byTables(op Operation, known bool) Requirement {
	switch {
	case r.denied(op):
		return Requirement{Deny: true}
	case !known && slices.Contains(r.Public, op.Method):
		return Requirement{Public: true}
	}
	need := oauth.Scopes(r.Base)
	if own, ok := lookup(r.Methods, op.Method); ok {
		need = need.Union(own)
	} else if twin(r.Methods, op.Method) {
		return Requirement{Deny: true} // a lenient server could treat it as the method with more requirements
	}
	table, named := r.table(op.Method)
	if !named {
		return Requirement{Scopes: need}
	}
	if !message.IsResource(op.Method) {
		return Requirement{Scopes: need.Union(r.listed(lookup(table, op.Name))), Direct: r.direct(op)}
	}
	need = need.Union(r.listed(lookupURI(table, op.Name, foldHost)))
	return Requirement{Scopes: need.Union(r.listed(lookupURI(table, op.Name, asOpened)))}
}

// listed returns the scopes found in a table, or Default.
func (r *Rules) listed(scopes []string, ok bool) []string {
	if !ok {
		return r.Default
	}
	return scopes
}

func (r *Rules) table(method string) (table map[string][]string, named bool) {
	switch {
	case method == "tools/call":
		return r.Tools, true
	case method == "prompts/get":
		return r.Prompts, true
	case message.IsResource(method):
		return r.Resources, true
	}
	return nil, false
}

// CheckRules rejects resource keys that would never match, and so would leave resources open.
func CheckRules(r *Rules) error {
	for _, key := range slices.Concat(slices.Sorted(maps.Keys(r.Resources)), r.DenyResources) {
		if strings.Contains(strings.TrimSuffix(key, "*"), "*") {
			return fmt.Errorf("mcpresource: Rules: %q: for resources, * is allowed only at the end", key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(r.Clearances)) {
		if err := r.Clearances[key].check(); err != nil {
			return fmt.Errorf("mcpresource: Rules: Clearances: %q: %w", key, err)
		}
	}
	return nil
}

func (r *Rules) denied(op Operation) bool {
	if r.deniesNamed(op) {
		return true
	}
	return message.IsResource(op.Method) &&
		slices.ContainsFunc(r.DenyResources, func(d string) bool { return deniesURI(d, op.Name) })
}

// deniesNamed is denied without resources.
func (r *Rules) deniesNamed(op Operation) bool {
	any := func(patterns []string, name string) bool {
		return slices.ContainsFunc(patterns, func(d string) bool { return Matches(d, name) })
	}
	switch {
	case any(folded(r.DenyMethods), fold(op.Method)):
		return true
	case op.Method == "tools/call":
		return any(r.Deny, op.Name)
	case op.Method == "prompts/get":
		return any(r.DenyPrompts, op.Name)
	}
	return false
}

func (r *Rules) direct(op Operation) bool {
	return op.Method == "tools/call" &&
		slices.ContainsFunc(r.Direct, func(d string) bool { return Matches(d, op.Name) })
}

// Expansion returns a function that adds the scopes that others imply.
func Expansion(r *Rules) func(oauth.Scopes) oauth.Scopes {
	return func(s oauth.Scopes) oauth.Scopes { return expand(r, s) }
}

// expand returns s and all scopes that it implies.
func expand(r *Rules, s oauth.Scopes) oauth.Scopes {
	if len(r.Implies) == 0 {
		return s
	}
	out := slices.Clone(s)
	for i := 0; i < len(out); i++ {
		out = out.Union(r.Implies[out[i]])
	}
	return out
}

// ScopeError means that the caller lacks scopes that an operation needs.
type ScopeError struct {
	Required oauth.Scopes // everything the operation needs
	Missing  oauth.Scopes // those that the caller lacks
	Denied   bool         // no scope would help
	Reason   string       // for a denied caller; may be ""
}

// DenialText returns the message for a denied caller.
func DenialText(e *ScopeError) string { return cmp.Or(e.Reason, "This operation is not permitted.") }

// Error implements error.
func (e *ScopeError) Error() string {
	if e.Denied {
		return "mcpresource: operation is denied: " + DenialText(e)
	}
	return "mcpresource: scope needed: " + e.Required.String()
}
