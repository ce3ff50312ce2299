package policy

import (
	"slices"
	"strings"

	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/storage"
)

// ResourceScopes returns every scope of a resource.
func ResourceScopes(r storage.Resource) oauth.Scopes {
	out := make(oauth.Scopes, 0, len(r.Scopes))
	for _, s := range r.Scopes {
		out = append(out, s.Name)
	}
	return out
}

// DefaultScopes returns the scopes of a resource that clients ask for at the first sign-in, and that are granted
// when a request names none it knows: those marked as default, and those that every call needs.
func DefaultScopes(r storage.Resource) (out oauth.Scopes) {
	every := EveryCall(r)
	for _, s := range r.Scopes {
		if s.Default || every.Has(s.Name) {
			out = append(out, s.Name)
		}
	}
	return out
}

// EveryCall returns the scopes of a resource that every call needs: those marked so, or else the first that is
// marked as default, or else the first (RU-17).
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

// Requestable returns the scopes that a request for a resource is about: the
// requested ones that the resource knows, plus offline_access if asked. Unknown
// scopes are dropped, never refused: real clients add scopes of their own, and the
// answer says what was granted (RFC 6749 §3.3, AS-111, AS-112). When nothing known remains, the
// defaults are used.
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

// Unknown returns the requested scopes that the resource does not have. Those of OpenID
// Connect, which clients add of their own accord, are no sign of a mistake.
func Unknown(r storage.Resource, requested oauth.Scopes) oauth.Scopes {
	own := oauth.Scopes{oauth.OfflineAccess, "openid", "profile", "email", "address", "phone"}
	return requested.Without(ResourceScopes(r)).Without(own)
}

// maxNamed bounds how many scopes an error names.
const maxNamed = 5

// Narrow returns the scopes of a refresh: all that was granted when the request
// names none, else the granted ones among the requested. Asking for a scope that
// the resource has and the grant has not is invalid_scope (OAuth 2.1 §4.3.1, AS-98);
// unknown scopes are dropped, since clients add offline_access and others
// of their own accord.
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
		return granted, nil // only unknown scopes were named: the same as none
	}
	return out, nil
}

// Machine returns the scopes of a client_credentials token: what the client is
// registered for among the requested, or all of that. A client without registered
// scopes gets the defaults of the resource. Nothing left is invalid_scope.
func Machine(r storage.Resource, registered, requested oauth.Scopes) (oauth.Scopes, error) {
	if len(registered) == 0 {
		registered = DefaultScopes(r)
	}
	return KeyScopes(r, registered, requested)
}

// KeyScopes returns the scopes of a client_credentials token of a client that holds some: what the
// resource still has of them among the requested, or all of that, but nothing that demands a proof of
// a person. A request is no way to more (RFC 6749 §3.3); nothing left of it is invalid_scope.
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

// Lessened returns the scopes of a helper of one who holds some: those requested, each of which must be
// held or included in one that is, or all that are held when the request names none. Wider than that,
// or nothing left, is invalid_scope (AS-243). Nothing is dropped silently but offline_access: what is
// handed on must be what was meant.
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

// Implied returns s with every scope that its members include, by the hierarchy of
// the resource.
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

// Within returns those of s that include nothing beyond allowed, by the hierarchy of the
// resource: a scope lets its holder do whatever it includes.
func Within(r storage.Resource, s, allowed oauth.Scopes) oauth.Scopes {
	return slices.DeleteFunc(slices.Clone(s), func(scope string) bool {
		return !allowed.Has(Implied(r, oauth.Scopes{scope})...)
	})
}

// NeedsConsent reports whether a person must be asked: when something requested is
// not covered by what the person consented to for this client and resource (AS-74).
func NeedsConsent(r storage.Resource, consented, requested oauth.Scopes) bool {
	return consented == nil || !Implied(r, consented).Has(requested...)
}
