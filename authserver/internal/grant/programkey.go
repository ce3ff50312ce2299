package grant

import (
	"context"
	"errors"
	"log/slog"

	"github.com/mcp-authd/mcp-authd/authserver/internal/binding"
	"github.com/mcp-authd/mcp-authd/authserver/internal/catalogue"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/policy"
	"github.com/mcp-authd/mcp-authd/internal/request"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// ProgramKeys is the client credentials grant for API keys that users create for their programs
// (PE-17). The token belongs to the key's grant, with the user as the subject and the key as the
// client. There is no refresh token; the key can get further tokens until it ends.
type ProgramKeys struct {
	Off      bool // disabled by the operator: no key is valid
	Store    storage.ProgramKeys
	Catalog  *catalogue.Catalogue
	Bindings binding.Checker
	Minter   *Minter
}

// A key is its own client: when it ends, the client ceases to exist, both immediately and after its
// deletion a day later. So the error is the one for unknown clients. After invalid_grant (RFC 6749
// §5.2), clients would ask again with the same key.
var (
	errKeyEnded = oauth.NewError(oauth.InvalidClient,
		"Client authentication failed: this key has ended. Its person can make another one.")
	errKeysOff = oauth.NewError(oauth.UnauthorizedClient,
		"Keys for programs are turned off on this authorization server.")
)

// Reply issues a token for the program, with one storage call.
func (g *ProgramKeys) Reply(ctx context.Context, client storage.Client, r TokenRequest) (*oauth.TokenResponse, error) {
	if g.Off {
		return nil, errKeysOff
	}
	named, err := g.Catalog.Named(ctx, r.Resources)
	if err != nil {
		return nil, err
	}
	grant, err := g.use(ctx, client, r.From)
	if err != nil {
		return nil, err
	}
	if named != "" && named != grant.Resource {
		return nil, errOtherResource
	}
	scopes, err := g.scopes(ctx, grant, r.Scopes)
	if err != nil {
		return nil, err
	}
	return g.Minter.issue(ctx, issuance{
		grant:    grant,
		scopes:   scopes,
		issuedAt: g.Minter.Now(),
		event:    audit.TokenIssued,
		proof:    r.Proof,
	})
}

// use records the use of a key, and returns its grant if it still allows anything.
func (g *ProgramKeys) use(ctx context.Context, client storage.Client, from string) (storage.Grant, error) {
	grant, err := g.Store.UseProgramKey(ctx,
		storage.ProgramKeyUse{ClientID: client.ID, From: from, Now: g.Minter.Now()})
	switch {
	case errors.Is(err, storage.ErrPaused):
		return grant, paused(err, "key")
	case errors.Is(err, storage.ErrNotFound), errors.Is(err, storage.ErrRevoked), errors.Is(err, storage.ErrExpired):
		return grant, errKeyEnded.Because(err)
	case err != nil:
		return grant, refusal.Unavailable(err)
	}
	request.Of(ctx).Note(audit.Grant(grant), slog.String("user", grant.UserID))
	switch err := g.Bindings.Check(ctx, grant.UpstreamID, refreshMaxAge); {
	case errors.Is(err, storage.ErrRevoked):
		return grant, errKeyEnded.Because(err)
	case err != nil:
		return grant, err
	}
	return grant, nil
}

// scopes returns the scopes of the grant that the resource still has and policy allows the user.
func (g *ProgramKeys) scopes(ctx context.Context, grant storage.Grant, requested oauth.Scopes) (oauth.Scopes, error) {
	resource, ok, err := g.Catalog.Lookup(ctx, grant.Resource)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, oauth.NewError(oauth.InvalidTarget, "The MCP server of this key is no longer known here.")
	}
	scopes, err := policy.KeyScopes(resource, grant.Scopes, requested)
	if err != nil {
		return nil, err
	}
	scopes, err = g.Bindings.Permit(ctx, binding.Of(grant), resource, scopes)
	switch {
	case errors.Is(err, storage.ErrRevoked):
		return nil, errKeyEnded.Because(err)
	case errors.Is(err, refusal.ErrNoScopes):
		return nil, oauth.NewError(oauth.InvalidScope,
			"The person of this key may not use the requested scopes any more.").Because(err)
	}
	return scopes, err
}
