package mcpresource

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// Clearance says whose word a call of a tool needs before it is carried out, each time: a person sees the tool and
// the arguments on a page of the authorization server, and allows this one call. The word counts for these
// arguments, this person, client and grant, once, within five minutes (RS-217). The zero value demands none.
//
// It is for the few tools whose effect cannot be taken back. Scopes say what a client may do at all; whoever has to
// allow every call soon reads none of them.
type Clearance struct {
	// By is oauth.ClearanceByPerson, the person for whom the call is made, or oauth.ClearanceByOther, another
	// person. "": nobody's word is needed.
	By string
	// Approvers are the names of the people who may give it, for oauth.ClearanceByOther. None: an administrator.
	Approvers []string
	// Authentication is how the person must have proved who they are when they give it.
	Authentication Authentication
	// When says of a call whether it needs a word, by its arguments; see Operation.Args. It has to say so of what it
	// cannot tell. Nil: every call does.
	When func(Operation) bool
}

func (c Clearance) demands() bool { return c.By != "" }

// and returns what meets both: the word of another person goes before that of the caller's own. It reports false when
// no person could give both.
func (c Clearance) and(d Clearance) (Clearance, bool) {
	out := c
	if d.By != oauth.ClearanceByPerson {
		out.By = d.By
	}
	switch {
	case len(c.Approvers) == 0:
		out.Approvers = d.Approvers
	case len(d.Approvers) > 0:
		out.Approvers = nil
		for _, name := range c.Approvers {
			if slices.Contains(d.Approvers, name) {
				out.Approvers = append(out.Approvers, name)
			}
		}
		slices.Sort(out.Approvers) // the tables of Rules have no order
		if len(out.Approvers) == 0 {
			return out, false
		}
	}
	out.Authentication, out.When = c.Authentication.and(d.Authentication), nil
	return out, true
}

// check says what is wrong with a Clearance of Rules.
func (c Clearance) check() error {
	age := c.Authentication.MaxAge
	switch {
	case c.By != oauth.ClearanceByPerson && c.By != oauth.ClearanceByOther:
		return fmt.Errorf("set By to %s or %s, not %q", oauth.ClearanceByPerson, oauth.ClearanceByOther, c.By)
	case len(c.Approvers) > 0 && c.By != oauth.ClearanceByOther:
		return fmt.Errorf("set By to %s, or leave Approvers out", oauth.ClearanceByOther)
	case slices.Contains(c.Approvers, ""):
		return errors.New("leave the empty name out of Approvers")
	case age < 0 || age%time.Second != 0:
		return fmt.Errorf("set Authentication.MaxAge in whole seconds, not to %s", age)
	}
	return nil
}

// tabled is what the table says of a call.
type tabled struct {
	Clearance
	needed     bool
	impossible bool // nothing could meet it
}

func (r *Rules) clearance(op Operation) (found tabled) {
	if len(r.Clearances) == 0 || op.Method != "tools/call" {
		return found
	}
	if own, ok := r.Clearances[op.Name]; ok {
		own = own.of(op)
		return tabled{own, own.demands(), false}
	}
	best := -1
	for key, c := range r.Clearances {
		says := len(key) - strings.Count(key, "*")
		if says < best || !matches(key, op.Name) {
			continue
		}
		switch c = c.of(op); {
		case says > best:
			best, found = says, tabled{c, c.demands(), false}
		case !found.needed:
			found = tabled{c, c.demands(), false}
		case c.demands():
			var possible bool
			found.Clearance, possible = found.and(c)
			found.impossible = found.impossible || !possible
		}
	}
	return found
}

// of is what is demanded of a call: nothing where When says so.
func (c Clearance) of(op Operation) Clearance {
	if c.When != nil && !c.When(op) {
		return Clearance{}
	}
	return c
}

// Clearances asks the authorization server for the word of a person. authserver.Server is one, and NewClearances
// has one for a server in another process.
type Clearances interface {
	// Clear asks for the caller of a token, who is in ctx as well (FromContext). An answer that is Cleared has been
	// used up by it: the same demand is asked for again after that. One that is still waited for stays the same.
	//
	// An *oauth.Error says why nobody is asked: invalid_request, that the call cannot be shown, with a description
	// for the client; invalid_grant, that the token is not active any more; slow_down, that too many calls wait;
	// others, that no word could help. Any other error, and server_error and temporarily_unavailable, mean that
	// this cannot be decided now.
	Clear(ctx context.Context, token string, d oauth.ClearanceDemand) (oauth.Clearance, error)
}

// clearancesOf is a validator that is a Clearances, too.
func clearancesOf(v Validator) Clearances {
	if l, ok := v.(local); ok {
		c, _ := l.Introspector.(Clearances)
		return c
	}
	c, _ := v.(Clearances)
	return c
}

// checkClearances refuses rules that nothing could meet.
func (g *Guard) checkClearances(r *Rules) error {
	if len(r.Clearances) > 0 && g.c.Clearances == nil {
		return errors.New("mcpresource: Rules.Clearances need Config.Clearances, to ask people by: set NewClearances, " +
			"or a Validator that is Local with an authserver.Server")
	}
	return nil
}

// ClearanceError says that an operation needs the word of a person, which this request has not been given. The guard
// asks for it in requests of HTTP; nothing else can.
type ClearanceError struct{ Required Clearance }

// Error implements error.
func (e *ClearanceError) Error() string {
	return "mcpresource: the operation needs clearance by a person: " + e.Required.By
}

// cleared is the call that a request was let through for.
type cleared struct{ id, tool, digest string }

// isFor reports whether the call is op. An adapter may have decoded it: what differs in white space alone is the same.
func (c *cleared) isFor(op Operation) bool {
	return c != nil && op.Method == "tools/call" && c.tool == op.Name && c.digest == Digest(op.Arguments)
}

type begunKey struct{}

// Begun returns a context for what comes after a call that was let through before, as the questions of a client about
// its task: Authorize and Recheck demand no clearance in it, which was for the call.
func Begun(ctx context.Context) context.Context { return context.WithValue(ctx, begunKey{}, true) }

// clearedFor returns a *ClearanceError when op needs a word that the request of p has not been given.
func clearedFor(ctx context.Context, p *Principal, op Operation, need Clearance) error {
	if !need.demands() || p.cleared.isFor(op) || ctx.Value(begunKey{}) != nil {
		return nil
	}
	return &ClearanceError{need}
}
