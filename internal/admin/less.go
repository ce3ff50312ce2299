package admin

import (
	"context"
	"errors"
	"log/slog"

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/label"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// LessGrant reduces the scopes of a grant.
type LessGrant struct {
	ID     string   `json:"id" jsonschema:"the id of the grant, grt_..."`
	Scopes []string `json:"scopes" jsonschema:"scopes to keep"`
}

// Operations that reduce a grant.
var (
	GrantNarrow = define(Spec{
		Name: "grant narrow", Method: "POST", Path: "/grants/{id}/narrow", Fresh: true,
		Summary: "Reduce the scopes of a grant",
		Details: "Reduces a grant to the scopes that you name, plus offline_access. This applies to all connections of\n" +
			"the application that the user has at the MCP server. You cannot remove scopes that the MCP server\n" +
			"needs for every call or marks as required. Refresh and introspection show the reduced scopes at\n" +
			"once. An access token that a resource server checks by itself keeps the old scopes until it expires\n" +
			"(tokens.access_ttl).",
	}, (*Service).narrowGrant)
	GrantPause = define(Spec{
		Name: "grant pause", Method: "POST", Path: "/grants/{id}/pause",
		Summary: "Pause the application of a grant until it is resumed",
		Details: "Pauses the application of a grant. The user's connections of it to the MCP server stop working, and\n" +
			"it gets no new ones, until the user or grant resume ends the pause. grant pauses lists the pauses.",
	}, (*Service).pauseGrant)
	GrantResume = define(Spec{
		Name: "grant resume", Method: "POST", Path: "/grants/{id}/resume", Fresh: true,
		Summary: "Resume the application of a grant",
	}, (*Service).resumeGrant)
)

func (s *Service) narrowGrant(ctx context.Context, in LessGrant) (Grant, error) {
	to := oauth.Scopes(in.Scopes)
	return s.lessen(ctx, in.ID, audit.GrantNarrowed, func(g storage.Grant) error {
		if err := s.keepsRequired(ctx, g, to); err != nil {
			return err
		}
		err := s.Store.NarrowGrant(ctx, g.UserID, g.ID, to, s.Now())
		switch {
		case errors.Is(err, storage.ErrNothing):
			return fault(ErrInvalid, "name at least one of %q: to end the grant, revoke it", g.Scopes)
		case errors.Is(err, storage.ErrWider):
			return fault(ErrInvalid, "the grant has only %q: a grant can be left less, and not be given more", g.Scopes)
		}
		return err
	}, slog.String("scope", to.String()))
}

func (s *Service) pauseGrant(ctx context.Context, in GrantID) (Grant, error) {
	return s.lessen(ctx, in.ID, audit.GrantPaused, func(g storage.Grant) error {
		err := s.Store.PauseGrant(ctx, g.UserID, g.ID, s.Now())
		if errors.Is(err, storage.ErrFull) {
			return fault(ErrInvalid, "the user has %s, and can have no more: resume one first, or revoke the grant",
				label.Count(storage.MaxPauses, "paused application", "paused applications"))
		}
		return err
	})
}

func (s *Service) resumeGrant(ctx context.Context, in GrantID) (Grant, error) {
	return s.lessen(ctx, in.ID, audit.GrantResumed, func(g storage.Grant) error {
		return s.Store.ResumeGrant(ctx, g.UserID, g.ID, s.Now())
	})
}

// lessen applies do to one live grant, and returns the changed grant.
func (s *Service) lessen(
	ctx context.Context, id, event string, do func(storage.Grant) error, more ...slog.Attr,
) (Grant, error) {
	g, err := s.FindGrant(ctx, id)
	if err != nil {
		return Grant{}, err
	}
	app, err := s.Store.GrantApplication(ctx, g.ID, s.Now())
	if err != nil && !errors.Is(err, storage.ErrNotFound) { // a machine's grant has no application
		return Grant{}, err
	}
	switch err := do(g); {
	case errors.Is(err, storage.ErrNotFound):
		return Grant{}, fault(ErrNotFound, "the grant %s has ended, or its code was not redeemed", g.ID)
	case err != nil:
		return Grant{}, err
	}
	if app.Key != "" {
		more = append(more, audit.Application(app))
	}
	s.Audit.Record(ctx, event, append(more, audit.Grant(g), slog.String("client_id", g.ClientID))...)
	if g, err = s.FindGrant(ctx, g.ID); err != nil {
		return Grant{}, err
	}
	views, err := s.viewGrants(ctx, []storage.Grant{g})
	if err != nil {
		return Grant{}, err
	}
	return views[0], nil
}
