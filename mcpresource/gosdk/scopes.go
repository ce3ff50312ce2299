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

// Scope is what a token can allow at a server, declared where a tool needs it.
type Scope struct {
	Name string
	// Description is what people are asked by. It completes "The application will be able to ...". It may be left
	// out where the same scope is declared with one elsewhere, or at an authorization server that has texts of its
	// own.
	Description string
	// First has clients ask for it when they first sign in, and not only when a call needs it: for
	// clients that cannot sign in for more. The default scopes of a server are asked for first anyway.
	First bool
	// Access is "read", "write" or "admin": people can grant what is read alone. "": not said.
	Access string
	// Dangerous scopes are granted only to a person who picks them.
	Dangerous bool
	// Implies are further scopes that this one includes.
	Implies []string
}

// Tools are the tools of a server with the scopes that they need. What a guard asks for, what its metadata
// offers and what people are asked about is all made of what is declared here.
//
// Every operation needs the default scopes, also a tool that is declared without a scope or added to
// the server in another way, and prompts and resources.
//
// The set of scopes is closed when Configure is called, as [Serve] does: from then on clients are told of it
// and people are asked by it. Tools may still come and go, with scopes of this set. The scopes of a tool
// belong to its name and are never taken away: one that is added again needs those of both declarations.
//
// Tools are safe for concurrent use.
type Tools struct {
	server   *mcp.Server
	standard []string

	mu     sync.RWMutex // guards what follows
	scopes []Scope      // each once, in the order of their declaration
	needs  map[string][]string
	clear  map[string]mcpresource.Clearance
	closed bool
}

// NewTools begins with the default scopes, which every operation at s needs. Without any, every token for the
// server is enough. It panics when one of them is not valid, or dangerous: people could leave it out, and so
// could do nothing at all.
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

// AddTool is mcp.AddTool for a tool that needs scopes, beside the default scopes of the server, or a [Clearance]. It
// panics where that does, and where Declare returns an error: the tool is not added then.
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

// Need is what a tool needs: a Scope or a Clearance.
type Need interface{ isNeed() }

func (Scope) isNeed()     {}
func (Clearance) isNeed() {}

// Clearance has a person approve each call of a tool, see [mcpresource.Clearance]. Without By it is the person for whom
// the call is made.
type Clearance mcpresource.Clearance

// Declare declares scopes before a tool that needs them is there: for tools that are added while the server runs,
// whose scopes have to be known at the start. An error says that a scope is not valid, is declared with
// another text, or is new and the set of scopes is closed.
func (t *Tools) Declare(scopes ...Scope) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.declare(scopes)
}

// need has calls of a tool need scopes, before the tool is there.
func (t *Tools) need(tool string, scopes []Scope, clear *Clearance) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if strings.Contains(tool, "*") {
		return errors.New("its name has a *, which would stand for any text: use another name")
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

// and joins two declarations of one scope, of which one may have the name alone.
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

// Server is the server that the tools belong to.
func (t *Tools) Server() *mcp.Server { return t.server }

// Scopes returns the scopes that were declared, in that order, the default ones first.
func (t *Tools) Scopes() []Scope {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return slices.Clone(t.scopes)
}

// Default reports whether a scope is one of those that every operation needs.
func (t *Tools) Default(scope string) bool { return slices.Contains(t.standard, scope) }

// Configure closes the set of scopes and puts what was declared into the configuration of a guard: Policy,
// which is a *mcpresource.Rules that may be added to, and FirstScopes, which are also the
// scopes_supported of its metadata (RFC 9728 §2). The error names a scope that is implied and was not declared.
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

// refine adds what was declared since.
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
