package grant

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/policy"
	"github.com/mcp-authd/mcp-authd/internal/request"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/ways"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// errUnproved reports that the user has to authenticate again.
var errUnproved = errors.New("authserver: the proof of the person allows none of the scopes")

// proved returns the scopes of a grant that the approving user's authentication still allows, and
// until when; zero: for the lifetime of the grant (AS-238). It returns errUnproved if no scope is
// left.
func proved(
	ctx context.Context, g storage.Grant, r storage.Resource, scopes oauth.Scopes, now time.Time,
) (left oauth.Scopes, until time.Time, err error) {
	left = policy.Proved(r, scopes, policy.Proof{ACR: acrOf(g), At: g.AuthTime}, now)
	if len(left) < len(scopes) {
		request.Of(ctx).Note(slog.String("scope_unproved", scopes.Without(left).String()))
		if len(left.Without(oauth.Scopes{oauth.OfflineAccess})) == 0 {
			return nil, until, errUnproved
		}
	}
	if want := policy.AuthenticationFor(r, left); want.MaxAge > 0 {
		until = g.AuthTime.Add(want.MaxAge)
	}
	return left, until, nil
}

// acrOf returns the authentication context class of the user of a grant, as reached here or as
// asserted by an issuer (AS-231).
func acrOf(g storage.Grant) string {
	if g.Asserted != nil {
		return g.Asserted.ACR
	}
	return ways.ACR(g.Methods)
}
