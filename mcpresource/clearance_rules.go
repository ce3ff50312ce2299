package mcpresource

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// Clearance says whose permission a call of a tool needs before it is carried out, each time: a person sees the tool
// and the arguments on a page of the authorization server, and approves this one call. The permission is for these
// arguments, this person, client and grant, once, within five minutes (RS-217). The zero value demands none.
//
// It is for the few tools whose effect cannot be taken back. Scopes say what a client may do at all; people who
// have to approve every call soon read none of them.
type Clearance struct {
	// By is oauth.ClearanceByPerson, the person for whom the call is made, or oauth.ClearanceByOther, another
	// person. "": no permission is needed.
	By string
	// Approvers are the names of the people who may give it, for oauth.ClearanceByOther. None: an administrator.
	Approvers []string
	// Authentication is how the person must have proved who they are when they give it.
	Authentication Authentication
	// When says whether a call needs a permission, by its arguments; see Operation.Args. It must return true for a
	// call that it cannot judge. Nil: every call needs one.
	When func(Operation) bool
}

func (c Clearance) demands() bool { return c.By != "" }

// and returns what meets both: the permission of another person goes before that of the caller's own. It reports false
// when no person could give both.
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
