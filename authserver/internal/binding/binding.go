// Package binding checks the provider session that a sign-in or a grant depends on, and the scopes
// that policy allows the user.
package binding

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/access"
	"github.com/mcp-authd/mcp-authd/internal/policy"
	"github.com/mcp-authd/mcp-authd/internal/request"
	"github.com/mcp-authd/mcp-authd/internal/sentence"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Bindings checks provider sessions. authserver.Bindings documents the contract.
type Bindings interface {
	Check(ctx context.Context, upstreamID string, maxAge time.Duration) error
	Permit(ctx context.Context, upstreamID, resource string, scopes oauth.Scopes) (
		left oauth.Scopes, withheldBy string, err error)
}

// Checker checks the provider session that a sign-in or grant depends on. An empty id means that it
// depends on none.
type Checker struct {
	Bindings Bindings      // nil: grants with a provider session are refused
	Rules    *access.Rules // for accounts
}

// Person is the account for a grant, and the provider session that the grant depends on, or "". If
// a resource has rules, a grant without an account gets none of its scopes.
type Person struct{ UserID, UpstreamID string }

// Of returns the user of a grant.
func Of(g storage.Grant) Person { return Person{g.UserID, g.UpstreamID} }

// Narrows reports whether policy may allow a user fewer scopes than a grant has, so that a refresh
// has to check it.
func (c Checker) Narrows(ctx context.Context) (bool, error) {
	if c.Bindings != nil {
		return true, nil
	}
	some, err := c.Rules.Any(ctx)
	return some, refusal.Protocol(err)
}

// Honours reports whether this server can check a provider session.
func (c Checker) Honours(upstreamID string) bool { return upstreamID == "" || c.Bindings != nil }

// Check returns nil if a provider session is live, or if upstreamID is empty. It returns
// storage.ErrRevoked if the session has ended, and an *oauth.Error if it cannot be checked. maxAge
// is the maximum age of the provider's last answer; zero means the provider's configured age.
func (c Checker) Check(ctx context.Context, upstreamID string, maxAge time.Duration) error {
	switch {
	case !c.Honours(upstreamID):
		return storage.ErrRevoked
	case upstreamID == "":
		return nil
	}
	return refusal.Protocol(c.Bindings.Check(ctx, upstreamID, maxAge))
}

// Stands reports whether a grant that depends on a provider session may be reported as active
// (AS-218).
func (c Checker) Stands(ctx context.Context, upstreamID string) (bool, error) {
	err := c.Check(ctx, upstreamID, 0)
	if errors.Is(err, storage.ErrRevoked) {
		return false, nil
	}
	return err == nil, err
}

// NoScopes is the error for a user who may have none of the requested scopes.
var NoScopes = sentence.NewError(oauth.AccessDenied,
	"Your account may not use what the application asks for. If it should, ask the operator of this server.", "denied_scopes").
	Because(refusal.ErrNoScopes)

// Permit returns the scopes that policy allows a user: the rules on accounts, and the rules of the
// session's provider, if any. It also checks the scopes that a scope includes, so that they cannot
// be reached through another. offline_access is not a permission and is kept. It returns
// storage.ErrRevoked if the session has ended, and [NoScopes] if no scope is left or a scope that
// every call needs is missing. The rules that withhold a scope are noted for the log only: the user
// and the client do not learn them.
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
		request.Of(ctx).Note(slog.String("scope_withheld", withheld.String()), slog.String("withheld_by", by))
	}
	if len(permitted) == 0 || policy.Useless(resource, asked, permitted) {
		return nil, NoScopes
	}
	return scopes.Intersect(append(oauth.Scopes{oauth.OfflineAccess}, permitted...)), nil
}

// Read reads the access rules, unless they were read a moment ago.
func (c Checker) Read(ctx context.Context) error {
	_, err := c.Rules.Any(ctx)
	return refusal.Protocol(err)
}

// Approvals returns the tools of a resource, by name or pattern, each call of which the rules on
// accounts make a user approve.
func (c Checker) Approvals(ctx context.Context, userID string, resource storage.Resource) ([]string, error) {
	if userID == "" || resource.Own { // a machine is in no group
		return nil, nil
	}
	tools, err := c.Rules.Approvals(ctx, userID, resource.Server())
	return tools, refusal.Protocol(err)
}

func (c Checker) allowed(
	ctx context.Context, who Person, resource storage.Resource, scopes oauth.Scopes,
) (left oauth.Scopes, withheldBy string, err error) {
	if !resource.Own { // roles control the administration of this server
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
