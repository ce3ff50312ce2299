// Package scoperule decides by rules which scopes of a resource users may have. It does not know
// where users and rules come from: thirdparty has rules about providers' claims, internal/access
// has rules about accounts.
package scoperule

import (
	"slices"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// Rank says how specific a rule is. The rules of the lowest rank that apply to a user decide.
type Rank int

// The ranks.
const (
	Person Rank = iota
	Group
	Everyone
)

// Rule gives the users that it applies to scopes of a resource.
type Rule struct {
	Resource string // "" for any
	Scopes   oauth.Scopes
	All      bool // every scope, including those missing in Scopes
	Rank     Rank
	// Whole rules decide on every scope of the resource. Other rules decide only on the scopes that
	// they name, which they reserve for the users that they apply to.
	Whole bool
}

func (r Rule) gives(scope string) bool { return r.All || r.Scopes.Has(scope) }

// governs reports whether the rule decides on a scope of a resource.
func (r Rule) governs(resource, scope string) bool {
	return (r.Resource == "" || r.Resource == resource) && (r.Whole || r.gives(scope))
}

// None is the index for no rule.
const None = -1

// Decide reports whether a user may have a scope of a resource, and returns the index of the
// deciding rule. holds says for each rule whether it applies to the user. If no rule applies, a
// scope is open unless a rule gives it to a group: a rule about one user does not affect others.
func Decide(rules []Rule, holds []bool, resource, scope string) (allowed bool, by int) {
	by, open := None, true
	for i, r := range rules {
		switch {
		case !r.governs(resource, scope):
		case !holds[i]:
			open = open && r.Rank != Group
		case by == None || r.Rank < rules[by].Rank:
			by, allowed = i, r.gives(scope)
		case r.Rank == rules[by].Rank && !allowed && r.gives(scope):
			by, allowed = i, true
		}
	}
	if by == None {
		return open, None
	}
	return allowed, by
}

// Settled reports whether Decide returns the same answer whichever further groups the user is in.
func Settled(rules []Rule, holds []bool, resource, scope string) bool {
	allowed, by := Decide(rules, holds, resource, scope)
	if by != None && rules[by].Rank == Person {
		return true
	}
	grouped := by != None && rules[by].Rank == Group
	for i, r := range rules {
		if holds[i] || r.Rank != Group || !r.governs(resource, scope) {
			continue
		}
		if gives := r.gives(scope); gives != allowed && (gives || !grouped) {
			return false
		}
	}
	return true
}

// Permitted returns the scopes that the rules permit a user, and the indexes of the rules that
// withhold the others, in order.
func Permitted(
	rules []Rule, holds []bool, resource string, scopes oauth.Scopes,
) (left oauth.Scopes, withheldBy []int) {
	for _, scope := range scopes {
		allowed, by := Decide(rules, holds, resource, scope)
		if allowed {
			left = append(left, scope)
			continue
		}
		for i, r := range rules {
			if r.governs(resource, scope) && withholds(rules, by, r, holds[i]) {
				withheldBy = append(withheldBy, i)
			}
		}
	}
	slices.Sort(withheldBy)
	return left, slices.Compact(withheldBy)
}

// withholds reports whether r withholds a scope from a user. A rule that applies to the user does
// so if it has the deciding rank. If no rule applies, a rule for another group does.
func withholds(rules []Rule, by int, r Rule, holds bool) bool {
	if by == None {
		return !holds && r.Rank == Group
	}
	return holds && r.Rank == rules[by].Rank
}
