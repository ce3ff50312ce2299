package authserver

import (
	"context"
	"net/url"

	"github.com/mcp-authd/mcp-authd/authserver/internal/flow"
	"github.com/mcp-authd/mcp-authd/authserver/internal/grant"
	"github.com/mcp-authd/mcp-authd/authserver/internal/shell"
)

// protocol implements flow.Protocol with the shell and the grants.
type protocol struct {
	shell     *shell.Shell
	approvals *grant.Approvals
}

// Validate implements flow.Protocol.
func (p *protocol) Validate(ctx context.Context, r flow.Request) error {
	return p.shell.Validate(ctx, authorizeRequest(r))
}

// Issue implements flow.Protocol.
func (p *protocol) Issue(ctx context.Context, a flow.Approval) (url.Values, error) {
	return p.shell.Authorize(ctx, authorizeRequest(a.Request), func(ctx context.Context) (string, error) {
		return p.approvals.Approve(ctx, grant.Approval{
			Session:     a.Session,
			UserID:      a.UserID,
			AuthTime:    a.AuthTime,
			Remembered:  a.Remembered,
			Declined:    a.Declined,
			Code:        a.Code,
			Shown:       a.Page,
			Client:      a.Client,
			RedirectURI: a.RedirectURI,
			Sent:        a.Sent,
			Challenge:   a.Challenge,
			Key:         a.Key,
			Resource:    a.Resource.URI,
			Scopes:      a.Scopes,
			Nonce:       a.Nonce,
			Clearance:   a.Clearance,
		})
	})
}

// Deny implements flow.Protocol.
func (p *protocol) Deny(ctx context.Context, code string) error { return p.approvals.Deny(ctx, code) }

func authorizeRequest(r flow.Request) shell.AuthorizeRequest {
	return shell.AuthorizeRequest{
		ResponseType: "code", // flow supports no other
		ResponseMode: r.ResponseMode,
		Client:       r.Client,
		RedirectURI:  r.RedirectURI,
		Scopes:       r.Scopes,
		State:        r.State,
	}
}
