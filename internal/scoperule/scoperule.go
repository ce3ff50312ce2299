// Package scoperule decides which scopes of a resource people may have, by rules. It knows nothing of where people and
// rules come from: thirdparty has rules on what a provider says of a person, internal/access has rules on accounts.
package scoperule

import (
	"slices"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// Rank says how closely a rule is about a person. Of the rules that hold for a person, those of the lowest rank decide.
type Rank int

// The ranks.
const (
	Person Rank = iota
	Group
	Everyone
)

// Rule gives the people for whom it holds scopes of a resource.
type Rule struct {
	Resource string // "": any
	Scopes   oauth.Scopes
	All      bool // every scope, also those that Scopes does not name
	Rank     Rank
	// Whole rules decide on every scope of the resource. Others decide only on the scopes that they name, which they
	// keep to the people for whom they hold.
	Whole bool
}

func (r Rule) gives(scope string) bool { return r.All || r.Scopes.Has(scope) }

// governs reports whether the rule decides on a scope of a resource.
func (r Rule) governs(resource, scope string) bool {
	return (r.Resource == "" || r.Resource == resource) && (r.Whole || r.gives(scope))
}

// None is the index of no rule.
const None = -1

// Decide reports whether a person may have a scope of a resource, and by which rule. holds says for each rule whether
// it holds for the person. Without a rule that holds, a scope is open unless a rule gives it to a group: a rule about
// one person says nothing about others.
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

// Permitted returns those of scopes that the rules leave to a person, and in order the indexes of the rules that
// withhold the others.
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

// withholds reports whether r is one of the rules that keep a scope from a person: a rule of the rank that decides, or
// when no rule holds for the person, a rule for a group that they are not in.
func withholds(rules []Rule, by int, r Rule, holds bool) bool {
	if by == None {
		return !holds && r.Rank == Group
	}
	return holds && r.Rank == rules[by].Rank
}
