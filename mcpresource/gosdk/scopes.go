package gosdk

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/mcpresource"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Scope is a scope of a server, declared with the tools that need it.
type Scope struct {
	Name string
	// Description is the text on the consent page. It completes "The application will be able to
	// ...". It may be empty if the scope is declared elsewhere with a description, or if the
	// authorization server has its own texts.
	Description string
	// First makes clients request the scope at the first sign-in, not only when a call needs it:
	// for clients that cannot request more later. The default scopes of a server are always
	// requested first.
	First bool
	// Access is "read", "write" or "admin": users can grant read access only. "": not stated.
	Access string
	// Dangerous scopes are granted only if the user selects them.
	Dangerous bool
	// Implies lists further scopes that this one includes.
	Implies []string
}

// Tools are the tools of a server with their scopes. The guard's requirements, its metadata and the
// consent texts all come from these declarations.
//
// Every operation needs the default scopes. That includes prompts, resources, and tools that are
// declared without scopes or added to the server directly.
//
// Configure closes the set of scopes, and [Serve] calls it: from then on they are published and
// used for consent. Tools may still be added and removed, with scopes of this set. The scopes of a
// tool are bound to its name and never removed: if it is added again, it needs those of both
// declarations.
//
// Tools is safe for concurrent use.
type Tools struct {
	server   *mcp.Server
	standard []string

	mu     sync.RWMutex // guards the fields below
	scopes []Scope      // unique, in order of declaration
	needs  map[string][]string
	clear  map[string]mcpresource.Clearance
	closed bool
}

// NewTools returns Tools with the default scopes, which every operation at s needs. Without any,
// every token for the server is sufficient. It panics if one of them is invalid, or dangerous:
// users could leave it out and then do nothing.
func NewTools(s *mcp.Server, defaults ...Scope) *Tools {
	t := &Tools{server: s, needs: map[string][]string{}, clear: map[string]mcpresource.Clearance{}}
	for _, d := range defaults {
		if d.Dangerous {
			panic(fmt.Sprintf("gosdk: NewTools: the default scope %q is dangerous, and everything needs it: "+
				"declare it at the tools that need it", d.Name))
		}
		t.standard = append(t.standard, d.Name)
	}
	if err := t.Declare(defaults...); err != nil {
		panic("gosdk: NewTools: " + err.Error())
	}
	return t
}

// AddTool is like mcp.AddTool, for a tool that needs scopes in addition to the default scopes, or a
// [Clearance]. It panics if mcp.AddTool does or if Declare returns an error; the tool is not added
// then.
func AddTool[In, Out any](t *Tools, tool *mcp.Tool, h mcp.ToolHandlerFor[In, Out], needs ...Need) {
	var scopes []Scope
	var clear *Clearance
	for _, n := range needs {
		switch n := n.(type) {
		case Scope:
			scopes = append(scopes, n)
		case Clearance:
			clear = &n
		}
	}
	if err := t.need(tool.Name, scopes, clear); err != nil {
		panic(fmt.Sprintf("gosdk: AddTool: tool %q: %v", tool.Name, err))
	}
	mcp.AddTool(t.server, tool, h)
}

// Need is a requirement of a tool: a Scope or a Clearance.
type Need interface{ isNeed() }

func (Scope) isNeed()     {}
func (Clearance) isNeed() {}

// Clearance requires approval of each call of a tool, see [mcpresource.Clearance]. The default of
// By is the user for whom the call is made.
type Clearance mcpresource.Clearance

// Declare declares scopes before the tools that need them: for tools added while the server runs,
// whose scopes must be known at the start. It returns an error if a scope is invalid, is declared
// with another text, or is new after the set was closed.
func (t *Tools) Declare(scopes ...Scope) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.declare(scopes)
}

// need makes calls of a tool require scopes, before the tool is added.
func (t *Tools) need(tool string, scopes []Scope, clear *Clearance) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if strings.Contains(tool, "*") {
		return errors.New("its name must not contain *, which matches any text")
	}
	if err := t.declare(scopes); err != nil {
		return err
	}
	all := oauth.Scopes(t.needs[tool])
	for _, s := range scopes {
		all = all.Union(oauth.Scopes{s.Name})
	}
	t.needs[tool] = all
	if clear != nil {
		c := mcpresource.Clearance(*clear)
		c.By = cmp.Or(c.By, oauth.ClearanceByPerson)
		t.clear[tool] = c
	}
	return nil
}

func (t *Tools) declare(scopes []Scope) error {
	after := slices.Clone(t.scopes)
	for _, s := range scopes {
		if err := s.validate(); err != nil {
			return err
		}
		i := slices.IndexFunc(after, func(o Scope) bool { return o.Name == s.Name })
		if i < 0 && t.closed {
			return fmt.Errorf("the scope %q is new, and the server runs: call Declare with it before", s.Name)
		}
		if i < 0 {
			after = append(after, s)
			continue
		}
		one, err := after[i].and(s)
		switch {
		case err != nil:
			return err
		case t.closed && !reflect.DeepEqual(one, after[i]):
			return fmt.Errorf("the scope %q has a text now, and the server runs: declare it with one before", s.Name)
		}
		after[i] = one
	}
	t.scopes = after
	return nil
}

func (s Scope) validate() error {
	switch {
	case !oauth.ValidScope(s.Name):
		return fmt.Errorf("%q is not a scope: it has no spaces, quotes or backslashes, such as notes:write", s.Name)
	case oauth.Reserved(s.Name):
		return fmt.Errorf("the scope %s belongs to the authorization server: use another name", s.Name)
	case !slices.Contains([]string{"", "read", "write", "admin"}, s.Access):
		return fmt.Errorf("the scope %q: its Access %q is not read, write or admin", s.Name, s.Access)
	}
	return nil
}

// and merges two declarations of one scope. One may consist of the name only.
func (s Scope) and(other Scope) (Scope, error) {
	bare := Scope{Name: s.Name}
	switch {
	case reflect.DeepEqual(s, other), reflect.DeepEqual(other, bare):
		return s, nil
	case reflect.DeepEqual(s, bare):
		return other, nil
	}
	return s, fmt.Errorf("the scope %q is declared in two ways, as %q and as %q: declare it once, and use it as a variable",
		s.Name, s.Description, other.Description)
}

// Server returns the server of the tools.
func (t *Tools) Server() *mcp.Server { return t.server }

// Scopes returns the declared scopes in order of declaration, default scopes first.
func (t *Tools) Scopes() []Scope {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return slices.Clone(t.scopes)
}

// Default reports whether scope is a default scope.
func (t *Tools) Default(scope string) bool { return slices.Contains(t.standard, scope) }

// Configure closes the set of scopes and adds the declarations to the configuration of a guard. It
// sets Policy to a *mcpresource.Rules, which may be extended, and FirstScopes, which are also
// scopes_supported in the metadata (RFC 9728 §2). The error names a scope that is implied but not
// declared.
func (t *Tools) Configure(c *mcpresource.Config) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	rules := &mcpresource.Rules{
		Base: t.standard, Tools: map[string][]string{}, Implies: map[string][]string{}, Refine: t.refine,
	}
	first := slices.Clone(t.standard)
	for _, s := range t.scopes {
		for _, implied := range s.Implies {
			if !slices.ContainsFunc(t.scopes, func(o Scope) bool { return o.Name == implied }) {
				return fmt.Errorf("gosdk: the scope %q implies %q, which is not declared: correct the name, or call Declare with it",
					s.Name, implied)
			}
		}
		if len(s.Implies) > 0 {
			rules.Implies[s.Name] = s.Implies
		}
		if s.First && !slices.Contains(first, s.Name) {
			first = append(first, s.Name)
		}
	}
	for tool, scopes := range maps.All(t.needs) {
		if len(scopes) > 0 {
			rules.Tools[tool] = scopes
		}
	}
	rules.Clearances = maps.Clone(t.clear)
	t.closed = true
	c.Policy, c.FirstScopes = rules, first
	return nil
}

// refine adds the declarations since Configure.
func (t *Tools) refine(op mcpresource.Operation, need mcpresource.Requirement) mcpresource.Requirement {
	if op.Method != "tools/call" || need.Deny {
		return need
	}
	t.mu.RLock()
	own, clear := t.needs[op.Name], t.clear[op.Name]
	t.mu.RUnlock()
	if clear.By != "" && (clear.When == nil || clear.When(op)) {
		need.Clearance = clear
	}
	if len(own) == 0 || !need.Public && oauth.Scopes(need.Scopes).Has(own...) {
		return need
	}
	need.Public = false
	need.Scopes = oauth.Scopes(t.standard).Union(need.Scopes).Union(own)
	return need
}
