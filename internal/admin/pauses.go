package admin

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/policy"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Pause is an application that a user has paused at an MCP server. It is independent of the grants.
type Pause struct {
	ID         string    `json:"id"`
	User       string    `json:"user"`
	UserName   string    `json:"user_name"`
	Client     string    `json:"client" jsonschema:"the client of the paused grant"`
	ClientName string    `json:"client_name"`
	Resource   string    `json:"resource"`
	PausedAt   time.Time `json:"paused_at"`
}

// PausesWanted selects the pauses of a user.
type PausesWanted struct {
	User string `json:"user" jsonschema:"the user (name or id)"`
}

// PauseID names a pause.
type PauseID struct {
	ID string `json:"id" jsonschema:"the id of the pause, pau_..."`
}

// Operations on pauses, which can outlive their grants.
var (
	GrantPauses = define(Spec{
		Name: "grant pauses", Method: "GET", Path: "/pauses", Roles: reading, Summary: "List paused applications",
		Details: "Lists the applications that a user, or the operator for a user, has paused, newest pause first. A\n" +
			"pause continues when the grants are gone; end it by its id with grant resume.",
	}, (*Service).listPauses)
	PauseEnd = define(Spec{
		Name: "grant end-pause", Method: "POST", Path: "/pauses/{id}/resume", Fresh: true,
		Summary: "End a pause by its id, with or without a live grant",
	}, (*Service).endPause)
)

func (s *Service) listPauses(ctx context.Context, in PausesWanted) (Page[Pause], error) {
	u, err := s.FindUser(ctx, in.User)
	if err != nil {
		return Page[Pause]{}, err
	}
	all, err := s.Store.Pauses(ctx, u.ID)
	out := Page[Pause]{Items: make([]Pause, 0, len(all))}
	for _, p := range all {
		out.Items = append(out.Items, pauseOf(p, u.Name))
	}
	return out, err
}

func pauseOf(p storage.Pause, userName string) Pause {
	return Pause{
		ID: p.ID, User: p.UserID, UserName: userName, Client: p.ClientID, ClientName: p.ClientName,
		Resource: p.Resource, PausedAt: p.At,
	}
}

// pausesOf returns the pauses that a cut of a selection ends. A selection without a user ends none.
func (s *Service) pausesOf(ctx context.Context, sel storage.Selection) ([]storage.Pause, error) {
	if sel.UserID == "" {
		return nil, nil
	}
	all, err := s.Store.Pauses(ctx, sel.UserID)
	return slices.DeleteFunc(all, func(p storage.Pause) bool {
		return sel.ClientID != "" && p.ClientID != sel.ClientID || sel.Resource != "" && p.Resource != sel.Resource
	}), err
}

func (s *Service) endPause(ctx context.Context, in PauseID) (Pause, error) {
	p, err := s.Store.PauseByID(ctx, in.ID)
	if err == nil {
		err = s.Store.EndPause(ctx, p.UserID, p.ID, s.Now())
	}
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return Pause{}, fault(ErrNotFound, "there is no pause %s; see: mcp-authd grant pauses", in.ID)
	case err != nil:
		return Pause{}, err
	}
	s.Audit.Record(ctx, audit.GrantResumed, audit.Pause(p))
	u, err := s.Store.User(ctx, p.UserID)
	return pauseOf(p, u.Name), err
}

// keepsRequired returns an error if a grant would lose scopes that its MCP server requires.
func (s *Service) keepsRequired(ctx context.Context, g storage.Grant, to oauth.Scopes) error {
	catalog, _, err := s.catalogue(ctx)
	if err != nil {
		return err
	}
	resource, _ := catalog.Lookup(g.Resource)
	if lost := policy.Kept(resource, g.Scopes, to).Without(to); len(lost) > 0 {
		return fault(ErrInvalid, "%q cannot be left out: %s requires it. Name it too, or revoke the grant",
			lost.String(), resource.URI)
	}
	return nil
}
