package policy

import (
	"slices"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// ResourceScopes returns every scope of a resource.
func ResourceScopes(r storage.Resource) oauth.Scopes {
	out := make(oauth.Scopes, 0, len(r.Scopes))
	for _, s := range r.Scopes {
		out = append(out, s.Name)
	}
	return out
}

// DefaultScopes returns the scopes of a resource for the first sign-in, which are also granted if a
// request names no known scope: scopes marked as default, and scopes that every call needs.
func DefaultScopes(r storage.Resource) (out oauth.Scopes) {
	every := EveryCall(r)
	for _, s := range r.Scopes {
		if s.Default || every.Has(s.Name) {
			out = append(out, s.Name)
		}
	}
	return out
}

// EveryCall returns the scopes of a resource that every call needs: scopes with that mark, or else
// the first default scope, or else the first scope (RU-17).
func EveryCall(r storage.Resource) (out oauth.Scopes) {
	for _, s := range r.Scopes {
		if s.EveryCall {
			out = append(out, s.Name)
		}
	}
	if len(out) > 0 || len(r.Scopes) == 0 {
		return out
	}
	first := max(0, slices.IndexFunc(r.Scopes, func(s storage.ScopeText) bool { return s.Default }))
	return oauth.Scopes{r.Scopes[first].Name}
}

// Requestable returns the effective scopes of a request: the requested ones that the resource
// knows, plus offline_access if requested. Unknown scopes are dropped rather than refused, because
// clients add their own scopes and the response lists the granted ones (RFC 6749 §3.3, AS-111,
// AS-112). If no known scope remains, the defaults apply.
func Requestable(r storage.Resource, requested oauth.Scopes) oauth.Scopes {
	out := requested.Intersect(ResourceScopes(r))
	if len(out) == 0 {
		out = slices.Clone(DefaultScopes(r))
	}
	if requested.Has(oauth.OfflineAccess) {
		out = append(out, oauth.OfflineAccess)
	}
	return out
}

// Unknown returns the requested scopes that the resource does not have. It ignores the scopes of
// OpenID Connect, which clients add without being asked.
func Unknown(r storage.Resource, requested oauth.Scopes) oauth.Scopes {
	own := oauth.Scopes{oauth.OfflineAccess, "openid", "profile", "email", "address", "phone"}
	return requested.Without(ResourceScopes(r)).Without(own)
}

// maxNamed limits how many scopes an error names.
const maxNamed = 5

// Narrow returns the scopes of a refresh: all granted scopes if the request names none, else the
// requested ones that are granted. Requesting a known scope that is not granted is invalid_scope
// (OAuth 2.1 §4.3.1, AS-98). Unknown scopes are dropped, because clients add offline_access and
// others without being asked.
func Narrow(granted, requested, known oauth.Scopes) (oauth.Scopes, error) {
	if len(requested) == 0 {
		return granted, nil
	}
	if wider := requested.Intersect(known).Without(granted); len(wider) > 0 {
		return nil, oauth.NewError(oauth.InvalidScope, "The requested scope exceeds the scope granted: the person has "+
			"not granted "+strings.Join(wider[:min(len(wider), maxNamed)], " ")+".")
	}
	out := granted.Intersect(requested)
	if len(out.Without(oauth.Scopes{oauth.OfflineAccess})) == 0 {
		return granted, nil // only unknown scopes were named, which counts as none
	}
	return out, nil
}

// Machine returns the scopes of a client_credentials token: the requested ones that the client is
// registered for, or all registered ones. A client without registered scopes gets the resource's
// defaults. An empty result is invalid_scope.
func Machine(r storage.Resource, registered, requested oauth.Scopes) (oauth.Scopes, error) {
	if len(registered) == 0 {
		registered = DefaultScopes(r)
	}
	return KeyScopes(r, registered, requested)
}

// KeyScopes returns the scopes of a client_credentials token for a client that holds some: the
// requested ones that the resource still has, or all of them. Scopes that demand a user's
// authentication are excluded. A request cannot add scopes (RFC 6749 §3.3), and an empty result is
// invalid_scope.
func KeyScopes(r storage.Resource, held, requested oauth.Scopes) (oauth.Scopes, error) {
	known := held.Intersect(ResourceScopes(r))
	allowed := WithoutPerson(r, known)
	requested = requested.Without(oauth.Scopes{oauth.OfflineAccess})
	if len(requested) == 0 && len(allowed) == len(known) {
		return allowed, nil
	}
	out := allowed
	if len(requested) > 0 {
		out = requested.Intersect(allowed)
	}
	if len(out) == 0 {
		return nil, oauth.NewError(oauth.InvalidScope, "The client is not allowed any of the requested scopes.")
	}
	return out, nil
}

// Lessened returns the scopes of a sub-agent's token: the requested scopes, or all held ones if the
// request names none. Each requested scope must be held, or included in a held one. Otherwise, or
// if nothing remains, the error is invalid_scope (AS-243). Only offline_access is dropped silently,
// because the token must have exactly the intended scopes.
func Lessened(r storage.Resource, held, requested oauth.Scopes) (oauth.Scopes, error) {
	held = held.Intersect(ResourceScopes(r))
	requested = requested.Without(oauth.Scopes{oauth.OfflineAccess})
	switch wider := requested.Without(Implied(r, held)); {
	case len(wider) > 0:
		return nil, oauth.NewError(oauth.InvalidScope, "The subject token does not have all of the requested scopes.")
	case len(held) == 0:
		return nil, oauth.NewError(oauth.InvalidScope, "The subject token has no scope that could be handed on.")
	case len(requested) == 0:
		return held, nil
	}
	return requested, nil
}

// Implied returns s and every scope that its members include, by the hierarchy of the resource.
func Implied(r storage.Resource, s oauth.Scopes) oauth.Scopes {
	out := slices.Clone(s)
	for i := 0; i < len(out); i++ {
		for _, t := range r.Scopes {
			if t.Name == out[i] {
				out = out.Union(t.Implies)
			}
		}
	}
	return out
}

// Within returns the scopes in s that include nothing beyond allowed, by the hierarchy of the
// resource. The holder of a scope can do everything that it includes.
func Within(r storage.Resource, s, allowed oauth.Scopes) oauth.Scopes {
	return slices.DeleteFunc(slices.Clone(s), func(scope string) bool {
		return !allowed.Has(Implied(r, oauth.Scopes{scope})...)
	})
}

// NeedsConsent reports whether the user must be asked, because a requested scope is not covered by
// their consent for this client and resource (AS-74).
func NeedsConsent(r storage.Resource, consented, requested oauth.Scopes) bool {
	return consented == nil || !Implied(r, consented).Has(requested...)
}
