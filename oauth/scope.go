package oauth

import (
	"slices"
	"strings"
)

// Scopes is an ordered set of scope tokens (RFC 6749 §3.3). Comparison is by
// exact string: scopes are case-sensitive.
type Scopes []string

// OfflineAccess is the scope by which a client asks for a refresh token
// (OpenID Connect Core §11; MCP 2026-07-28 "Refresh Tokens"). It belongs to the
// authorization server and never to a resource.
const OfflineAccess = "offline_access"

// MaxScopes bounds the scopes of one request. No real one comes near it; without
// a bound, removing duplicates from a hostile value costs seconds.
const MaxScopes = 128

// ParseScopes splits a space-delimited scope value. Duplicates, tokens with
// characters outside RFC 6749 §3.3 and what exceeds MaxScopes are dropped, order
// is kept.
func ParseScopes(s string) Scopes {
	var out Scopes
	for t := range strings.FieldsSeq(s) {
		if len(out) == MaxScopes {
			break
		}
		if ValidScope(t) && !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	return out
}

// ValidScope reports whether t is a scope-token: one or more of
// %x21 / %x23-5B / %x5D-7E (RFC 6749 §3.3).
func ValidScope(t string) bool {
	if t == "" {
		return false
	}
	for i := range len(t) {
		if c := t[i]; c < 0x21 || c > 0x7e || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// Reserved reports whether a scope is the authorization server's own, which no resource can have:
// offline_access, and what begins as the scope that names a clearance.
func Reserved(scope string) bool {
	return scope == OfflineAccess || strings.HasPrefix(scope, ScopeClearance)
}

// String joins the scopes with single spaces.
func (s Scopes) String() string { return strings.Join(s, " ") }

// Has reports whether every one of want is in s.
func (s Scopes) Has(want ...string) bool {
	for _, w := range want {
		if !slices.Contains(s, w) {
			return false
		}
	}
	return true
}

// Intersect returns the members of s that are in other, in the order of s.
func (s Scopes) Intersect(other Scopes) Scopes {
	var out Scopes
	for _, t := range s {
		if slices.Contains(other, t) {
			out = append(out, t)
		}
	}
	return out
}

// Union returns s followed by the members of other that s lacks.
func (s Scopes) Union(other Scopes) Scopes {
	out := slices.Clone(s)
	for _, t := range other {
		if !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	return out
}

// Without returns the members of s that are not in other, in the order of s.
func (s Scopes) Without(other Scopes) Scopes {
	var out Scopes
	for _, t := range s {
		if !slices.Contains(other, t) {
			out = append(out, t)
		}
	}
	return out
}

// WithoutClearances returns s without the scopes that name clearances, and the id of the last of those;
// "": there is none. A client that adds each challenge to what it asked for before has the new one last.
func (s Scopes) WithoutClearances() (rest Scopes, clearance string) {
	for _, scope := range s {
		id, ok := strings.CutPrefix(scope, ScopeClearance)
		switch {
		case !ok:
			rest = append(rest, scope)
		case id != "":
			clearance = id
		}
	}
	return rest, clearance
}
