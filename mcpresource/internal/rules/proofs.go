package rules

import (
	"slices"
	"strings"
	"time"
)

// Authentication states how a user must have authenticated (RFC 9470). A token that does not
// satisfy it gets 401 with insufficient_user_authentication, the ACR values and the maximum age.
// Many clients do not know that error: they refresh their token, and sign in only if a scope is
// missing. For them, mcp-authd omits the scope from a refreshed token when the authentication is
// too old. A machine's token has no user and never satisfies it. The zero value requires nothing.
type Authentication struct {
	ACR    []string      // any one of these authentication context classes; empty: any class
	MaxAge time.Duration // maximum age, in whole seconds; 0: no limit
}

// DemandsProof reports whether a requires anything.
func DemandsProof(a Authentication) bool { return len(a.ACR) > 0 || a.MaxAge > 0 }

// BothProofs returns the combination of a and b. If they have no class in common, nothing satisfies it.
func BothProofs(a, b Authentication) Authentication {
	out := a
	switch {
	case len(a.ACR) == 0:
		out.ACR = b.ACR
	case len(b.ACR) > 0:
		out.ACR = slices.DeleteFunc(slices.Clone(a.ACR), func(acr string) bool { return !slices.Contains(b.ACR, acr) })
		if len(out.ACR) == 0 {
			out.ACR = []string{NoACR}
		}
	}
	if a.MaxAge == 0 || b.MaxAge > 0 && b.MaxAge < a.MaxAge {
		out.MaxAge = b.MaxAge
	}
	return out
}

// NoACR is not a class of any server.
const NoACR = ""

// AuthenticationError means that an operation requires an authentication of the user that their
// token does not show.
type AuthenticationError struct{ Required Authentication }

// Error implements error.
func (e *AuthenticationError) Error() string {
	var want []string
	if len(e.Required.ACR) > 0 {
		want = append(want, "one of "+strings.Join(e.Required.ACR, ", "))
	}
	if e.Required.MaxAge > 0 {
		want = append(want, "not older than "+e.Required.MaxAge.String())
	}
	return "mcpresource: proof of the person needed: " + strings.Join(want, ", ")
}
