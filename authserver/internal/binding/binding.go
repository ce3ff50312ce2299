// Package binding says whether the session at a provider that a sign-in or a grant rests on
// still stands, and what policy gives the person behind it.
package binding

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/access"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/policy"
	"github.com/mcp-authd/mcp-authd/storage"
)

// Bindings asks about sessions at providers; authserver.Bindings has the contract.
type Bindings interface {
	Check(ctx context.Context, upstreamID string, maxAge time.Duration) error
	Permit(ctx context.Context, upstreamID, resource string, scopes oauth.Scopes) (
		left oauth.Scopes, withheldBy string, err error)
}

// Checker asks about the session at a provider that something rests on. An empty id is that
// of what rests on none.
type Checker struct {
	Bindings Bindings      // nil: grants that rest on a session at a provider are refused
	Rules    *access.Rules // of accounts
}

// Person is the account for which something is granted, and the session at a provider that it rests on; "": none.
// Where there are rules for a resource, nobody without an account has anything of it.
type Person struct{ UserID, UpstreamID string }

// Of returns the person of a grant.
func Of(g storage.Grant) Person { return Person{g.UserID, g.UpstreamID} }

// Narrows reports whether a person may have fewer scopes than a grant says: what a refresh has to look at.
func (c Checker) Narrows(ctx context.Context) (bool, error) {
	if c.Bindings != nil {
		return true, nil
	}
	some, err := c.Rules.Any(ctx)
	return some, refusal.Protocol(err)
}

// Honours reports whether this server can tell if a session at a provider stands.
func (c Checker) Honours(upstreamID string) bool { return upstreamID == "" || c.Bindings != nil }

// Check returns nil when a session at a provider stands, or when a grant rests on no such
// session; storage.ErrRevoked when it has ended; an *oauth.Error when that cannot be told now.
// maxAge is how old the provider's last word may be, zero: what the provider's
// configuration says.
func (c Checker) Check(ctx context.Context, upstreamID string, maxAge time.Duration) error {
	switch {
	case !c.Honours(upstreamID):
		return storage.ErrRevoked
	case upstreamID == "":
		return nil
	}
	return refusal.Protocol(c.Bindings.Check(ctx, upstreamID, maxAge))
}

// Stands reports whether what rests on a session at a provider may be called active
// (AS-218).
func (c Checker) Stands(ctx context.Context, upstreamID string) (bool, error) {
	err := c.Check(ctx, upstreamID, 0)
	if errors.Is(err, storage.ErrRevoked) {
		return false, nil
	}
	return err == nil, err
}

// NoScopes is for a person who may have none of the scopes that were asked for.
var NoScopes = oauth.NewError(oauth.AccessDenied,
	"Your account may not use what the application asks for. If it should, ask the operator of this server.").
	Because(refusal.ErrNoScopes)

// Permit returns those of scopes that policy gives a person: the rules on accounts, and those of the provider of the
// session, if any. It looks at all that a scope includes, or a scope would be a way to what another one is
// kept for. offline_access is not a permission and stays. storage.ErrRevoked when the
// session does not stand; [NoScopes] when nothing is left, or not what every call needs. Which rules withhold
// something is noted of the request of ctx: the person and the client do not learn it.
func (c Checker) Permit(
	ctx context.Context, who Person, resource storage.Resource, scopes oauth.Scopes,
) (oauth.Scopes, error) {
	asked := scopes.Without(oauth.Scopes{oauth.OfflineAccess})
	if len(asked) == 0 {
		return scopes, nil
	}
	if !c.Honours(who.UpstreamID) {
		return nil, storage.ErrRevoked
	}
	allowed, by, err := c.allowed(ctx, who, resource, policy.Implied(resource, asked))
	if err != nil {
		return nil, refusal.Protocol(err)
	}
	permitted := policy.Within(resource, asked, allowed)
	if withheld := asked.Without(permitted); len(withheld) > 0 {
		audit.Note(ctx, slog.String("scope_withheld", withheld.String()), slog.String("withheld_by", by))
	}
	if len(permitted) == 0 || policy.Useless(resource, asked, permitted) {
		return nil, NoScopes
	}
	return scopes.Intersect(append(oauth.Scopes{oauth.OfflineAccess}, permitted...)), nil
}

func (c Checker) allowed(
	ctx context.Context, who Person, resource storage.Resource, scopes oauth.Scopes,
) (left oauth.Scopes, withheldBy string, err error) {
	if !resource.Own { // a role decides on the administration of this server
		if scopes, withheldBy, err = c.Rules.Permit(ctx, who.UserID, resource.Server(), scopes); err != nil {
			return nil, "", err
		}
	}
	if who.UpstreamID == "" {
		return scopes, withheldBy, nil
	}
	left, atProvider, err := c.Bindings.Permit(ctx, who.UpstreamID, resource.Server(), scopes)
	if withheldBy != "" && atProvider != "" {
		withheldBy += "; "
	}
	return left, withheldBy + atProvider, err
}
