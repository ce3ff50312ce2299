package oauth

import (
	"slices"
	"strings"
)

// Scopes is an ordered set of scope tokens (RFC 6749 §3.3). Comparison is case-sensitive.
type Scopes []string

// OfflineAccess is the scope that requests a refresh token (OpenID Connect Core §11; MCP 2026-07-28
// "Refresh Tokens"). It belongs to the authorization server, never to a resource.
const OfflineAccess = "offline_access"

// MaxScopes is the maximum number of scopes in one request. Real requests have far fewer. Without a
// limit, removing duplicates from a hostile value takes seconds.
const MaxScopes = 128

// ParseScopes splits a space-delimited scope value and keeps its order. It drops duplicates, tokens
// with characters outside RFC 6749 §3.3, and everything after MaxScopes scopes.
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

// ValidScope reports whether t is a scope-token: one or more of %x21 / %x23-5B / %x5D-7E (RFC 6749
// §3.3).
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

// Reserved reports whether a scope belongs to the authorization server, so that no resource can use
// it: offline_access and scopes with the prefix ScopeClearance.
func Reserved(scope string) bool {
	return scope == OfflineAccess || strings.HasPrefix(scope, ScopeClearance)
}

// String joins the scopes with single spaces.
func (s Scopes) String() string { return strings.Join(s, " ") }

// Has reports whether s contains all of want.
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

// WithoutClearances returns s without the scopes that name tool call approvals, and the id of the
// last of these, or "". The last is the newest: clients append each challenge's scopes to their
// earlier ones.
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
