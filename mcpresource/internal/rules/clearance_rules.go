package rules

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// Clearance states which approval each call of a tool needs. A user sees the tool and the arguments
// on a page of the authorization server, and approves this one call. An approval is for these
// arguments, this user, client and grant, once, within five minutes (RS-217). The zero value
// requires none.
//
// Use it for the few tools whose effect cannot be undone. Scopes limit a client in general. Users
// who must approve every call soon stop reading.
type Clearance struct {
	// By is oauth.ClearanceByPerson, the user for whom the call is made, or oauth.ClearanceByOther,
	// another user. "": no approval is needed.
	By string
	// Approvers are the names of the users who may approve, for oauth.ClearanceByOther. Empty: an
	// administrator.
	Approvers []string
	// Authentication states how the approver must have authenticated.
	Authentication Authentication
	// When reports whether a call needs approval, based on its arguments; see Operation.Args. It
	// must return true for calls that it cannot judge. Nil: every call needs approval.
	When func(Operation) bool
}

// DemandsApproval reports whether c requires an approval.
func DemandsApproval(c Clearance) bool { return c.By != "" }

// and returns the combination of c and d. ClearanceByOther overrides ClearanceByPerson. ok is false
// if no user could satisfy both.
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
		slices.Sort(out.Approvers) // the tables of Rules are unordered
		if len(out.Approvers) == 0 {
			return out, false
		}
	}
	out.Authentication, out.When = BothProofs(c.Authentication, d.Authentication), nil
	return out, true
}

// check returns an error if a Clearance of Rules is wrong.
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

// tabled is the Clearance that the tables require for a call.
type tabled struct {
	Clearance
	needed     bool
	impossible bool // no user could satisfy it
}

func (r *Rules) clearance(op Operation) (found tabled) {
	if len(r.Clearances) == 0 || op.Method != "tools/call" {
		return found
	}
	if own, ok := r.Clearances[op.Name]; ok {
		own = own.of(op)
		return tabled{own, DemandsApproval(own), false}
	}
	best := -1
	for key, c := range r.Clearances {
		says := len(key) - strings.Count(key, "*")
		if says < best || !Matches(key, op.Name) {
			continue
		}
		switch c = c.of(op); {
		case says > best:
			best, found = says, tabled{c, DemandsApproval(c), false}
		case !found.needed:
			found = tabled{c, DemandsApproval(c), false}
		case DemandsApproval(c):
			var possible bool
			found.Clearance, possible = found.and(c)
			found.impossible = found.impossible || !possible
		}
	}
	return found
}

// of returns the Clearance that a call requires. It is empty if When returns false.
func (c Clearance) of(op Operation) Clearance {
	if c.When != nil && !c.When(op) {
		return Clearance{}
	}
	return c
}
