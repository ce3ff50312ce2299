package mcpresource

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mcp-authd/mcp-authd/mcpresource/internal/message"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Requirement is what an operation needs. The zero value is any valid token.
type Requirement struct {
	Scopes []string // all of them
	Deny   bool     // no caller may, whatever their scopes
	// Reason is what callers are told of Deny: a sentence. "": that the operation is not permitted.
	Reason string
	Direct bool // the application itself may, and no helper of it: see [Principal.Actors]
	Public bool // no token is needed
	// Authentication is how the person of the token must have proved who they are.
	Authentication Authentication
	// Clearance is whose permission each call of a tool needs, beside all else.
	Clearance Clearance
}

// open reports whether no token is needed.
func (r Requirement) open() bool { return r.Public && !r.Deny && !r.Clearance.demands() }

// Policy decides what an operation needs. It must be safe for concurrent use.
type Policy interface{ Require(Operation) Requirement }

// Rules is a Policy made of tables, by method, tool, prompt and resource. Refine looks at the
// arguments too; Config.Check then looks at whose the object is. A caller who lacks a scope gets
// all the scopes that the message needs named at once ([StepUp]).
//
// A key is an exact name or a pattern in which "*" stands for any text; for resources it may stand
// only at the end. An exact name is preferred, then the pattern with the most characters other than
// "*"; of several that are equally long, the scopes of all are needed. Do not change it after New.
type Rules struct {
	// Base is needed for everything that is not Public, and is what clients ask for first.
	Base []string
	// Default is needed, beyond Base, by tools, prompts and resources that no table names, so that
	// a new one is not left open by mistake.
	Default []string
	// Methods, Tools, Prompts and Resources (by URI) name what is needed beyond Base.
	Methods, Tools, Prompts, Resources map[string][]string
	// Deny lists the tools that no caller may call, by name or pattern, and the other lists what
	// else no caller may do. They override Public and the tables; Refine overrides them.
	Deny, DenyMethods, DenyPrompts, DenyResources []string
	// Held, when not nil, is Deny for what changes while the server runs: it returns why no caller may call
	// a tool at present (Requirement.Reason), "" for one that is not held.
	Held func(tool string) (reason string)
	// Direct lists the tools, by name or pattern, that an application may call itself, and no helper to
	// which it has handed its access: such a token names an actor (RFC 8693 §4.1).
	Direct []string
	// Implies is the scope hierarchy: a token with the key also has the values, and what these
	// imply in turn.
	Implies map[string][]string
	// Authentication names, for a scope, how a person must have proved who they are where that scope is
	// needed (RFC 9470). An authorization server that knows the same rule, as mcp-authd does, also serves
	// clients that know scopes alone: see [Authentication].
	Authentication map[string]Authentication
	// Clearances names the tools, by name or pattern, of which each call needs the permission of a person, once the
	// caller has the scopes for it. Of patterns that are equally long both have to be met.
	Clearances map[string]Clearance
	// Public methods need no token; they should reveal nothing about any person.
	// A call that needs clearance needs one nevertheless.
	Public []string
	// Refine, when not nil, decides last: it gets the requirement of the tables, and may look at
	// the arguments with Operation.Args.
	Refine func(op Operation, need Requirement) Requirement
}

// Require implements Policy.
func (r *Rules) Require(op Operation) Requirement {
	clearance := r.clearance(op)
	need := r.byTables(op, clearance.needed)
	r.finish(op, &need, &clearance)
	return need
}

// finish is what comes after the tables.
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
		need.Scopes = slices.Clone(need.Scopes) // those of the tables are not for it to change
		*need = r.Refine(op, *need)
	}
	if len(r.Authentication) == 0 {
		return
	}
	for _, scope := range need.Scopes { // of Refine, too: it may add to what a scope demands, and take nothing
		need.Authentication = need.Authentication.and(r.Authentication[scope])
	}
}

// byTables is what the tables of scopes say; known: that the call has to come of a person.
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
		return Requirement{Deny: true} // a lenient server could take it for the one that needs more
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

// listed is what a table says, or else Default.
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

// validate refuses keys for resources that would never match, and so leave open what they
// were meant to guard.
func (r *Rules) validate() error {
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

// deniesNamed is denied but for resources.
func (r *Rules) deniesNamed(op Operation) bool {
	any := func(patterns []string, name string) bool {
		return slices.ContainsFunc(patterns, func(d string) bool { return matches(d, name) })
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
		slices.ContainsFunc(r.Direct, func(d string) bool { return matches(d, op.Name) })
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
	Reason   string       // what a caller who is denied is told; "" for nothing else
}

// text is what a caller who is denied is told.
func (e *ScopeError) text() string { return cmp.Or(e.Reason, "This operation is not permitted.") }

// Error implements error.
func (e *ScopeError) Error() string {
	if e.Denied {
		return "mcpresource: operation is denied: " + e.text()
	}
	return "mcpresource: scope needed: " + e.Required.String()
}
