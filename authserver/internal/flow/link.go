package flow

import (
	"context"
	"log/slog"
	"slices"
	"strings"

	"github.com/mcp-authd/mcp-authd/authserver/internal/connect"
	"github.com/mcp-authd/mcp-authd/authserver/internal/entry"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/delegation"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// ConnectForm is the content of the form at /connect, sealed and bound to the browser.
type ConnectForm struct {
	Request string `json:"r"` // sealed by connect.Links
	UserID  string `json:"u"`
}

// Open shows the page of a link to the user who opens it.
func (s *ProviderSignIns) Open(ctx context.Context, sealed string, token storage.Hash) (Step, error) {
	r, err := s.Links.Open(sealed)
	if err != nil {
		return BadLink{err}, nil
	}
	v, err := s.Flow.Browsers.LiveVisit(ctx, token, storage.VisitKey{})
	switch {
	case err != nil:
		return nil, err
	case v == nil:
		notice := s.Flow.Browsers.EndNotice(ctx, token)
		return SignInStep{entry.Login{To: entry.Destination{Connect: sealed}, EndNotice: notice}}, nil
	case v.User.ID != r.UserID:
		s.recordNotYours(ctx, r, v)
		return NotYours{}, nil
	}
	provider, ok := s.Flow.Options.Provider(r.Provider)
	if !ok {
		return BadLink{connect.ErrLink}, nil
	}
	return AskConnect{ConnectForm{sealed, v.User.ID}, r, provider, s.resource(ctx, r.Resource), *v}, nil
}

// Extend carries out the user's decision on the page of a link.
func (s *ProviderSignIns) Extend(
	ctx context.Context, asked AskConnect, verdict string, networks []string,
) (Step, error) {
	switch verdict {
	case "approve":
		to := entry.Destination{Connect: asked.Form.Request}
		if err := s.mayExtend(ctx, asked); err != nil {
			return unproved(to, err), nil
		}
		p := ProviderForm{
			Provider: asked.Request.Provider,
			Purpose:  delegation.PurposeExtend,
			UserID:   asked.Request.UserID,
			Payload:  Payload{Destination: to},
		}
		return s.begin(ctx, p, networks, delegation.Request{Scopes: asked.Request.Scopes}), nil
	case "deny":
		return Connected{asked.Provider, asked.Resource, true}, nil
	}
	return nil, incomplete.Err
}

// mayExtend returns an error if the session has to authenticate before it gives an MCP server more
// access at a provider. A recent authentication is required if the user has no linked account at
// the provider, because the returned account becomes another authentication method (PE-04). If one
// is linked, the provider cannot return another; if it is unlinked meanwhile, Claim asks.
func (s *ProviderSignIns) mayExtend(ctx context.Context, asked AskConnect) error {
	ids, err := s.Delegation.Identities(ctx, asked.Request.UserID)
	if err != nil {
		return refusal.Unavailable(err)
	}
	if slices.ContainsFunc(ids, func(id storage.Identity) bool { return id.Connector == asked.Request.Provider }) {
		return entry.Sufficient(ctx, s.Flow.Factors, asked.Visit)
	}
	return s.mayTie(ctx, asked.Visit.Session.Hash, asked.Request.UserID)
}

// mayTie returns the error of entry.Browsers.Owed, because a linked account at a provider can sign
// in from then on.
func (s *ProviderSignIns) mayTie(ctx context.Context, token storage.Hash, userID string) error {
	_, err := s.Flow.Browsers.ActingAs(ctx, token, userID, entry.Change)
	return err
}

// recordNotYours records that a user opened another user's link. Someone may have sent it to get an
// account of theirs linked to the other user.
func (s *ProviderSignIns) recordNotYours(ctx context.Context, r connect.Request, v *storage.Visit) {
	s.Flow.Audit.Record(ctx, audit.ConnectRefused, slog.String("user", v.User.ID), slog.String("for_user", r.UserID),
		slog.String("connector", r.Provider), slog.String("resource", r.Resource))
}

// connected returns the page after a link. The link may have expired meanwhile.
func (s *ProviderSignIns) connected(ctx context.Context, sealed string, declined bool) Step {
	r, err := s.Links.Open(sealed)
	if r.Provider == "" {
		return Fail{Err: err}
	}
	provider, _ := s.Flow.Options.Provider(r.Provider)
	return Connected{provider, s.resource(ctx, r.Resource), declined}
}

// resource returns the resource with its display name.
func (s *ProviderSignIns) resource(ctx context.Context, uri string) storage.Resource {
	if catalog, err := s.Flow.Catalog.Load(ctx); err == nil {
		if r, ok := catalog.Lookup(uri); ok {
			return r
		}
	}
	return storage.Resource{URI: uri, Name: strings.TrimPrefix(uri, "https://")}
}
