package grant

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/mcp-authd/mcp-authd/audit"
	"github.com/mcp-authd/mcp-authd/internal/ways"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/policy"
	"github.com/mcp-authd/mcp-authd/storage"
)

// errUnproved: the person has to prove again who they are.
var errUnproved = errors.New("authserver: the proof of the person allows none of the scopes")

// proved returns those of the scopes of a grant that the proof of the person who approved still allows,
// and until when it does; zero: as long as the grant lives (AS-238). errUnproved when it allows none.
func proved(
	ctx context.Context, g storage.Grant, r storage.Resource, scopes oauth.Scopes, now time.Time,
) (left oauth.Scopes, until time.Time, err error) {
	left = policy.Proved(r, scopes, policy.Proof{ACR: acrOf(g), At: g.AuthTime}, now)
	if len(left) < len(scopes) {
		audit.Note(ctx, slog.String("scope_unproved", scopes.Without(left).String()))
		if len(left.Without(oauth.Scopes{oauth.OfflineAccess})) == 0 {
			return nil, until, errUnproved
		}
	}
	if want := policy.AuthenticationFor(r, left); want.MaxAge > 0 {
		until = g.AuthTime.Add(want.MaxAge)
	}
	return left, until, nil
}

// acrOf says how strongly the person of a grant proved who they are, to us or to the issuer of an
// assertion (AS-231).
func acrOf(g storage.Grant) string {
	if g.Asserted != nil {
		return g.Asserted.ACR
	}
	return ways.ACR(g.Methods)
}
