package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// GrantsToEnd selects the grants to revoke: by names, by the provider that they depend on, or all.
type GrantsToEnd struct {
	Which
	Provider string `json:"provider,omitempty" jsonschema:"all grants from sign-ins at this provider, and the sign-ins"`
	All      bool   `json:"all,omitempty" jsonschema:"every grant"`
}

// GrantsEnded lists the revoked grants.
type GrantsEnded struct {
	// Items lists the grants if there are at most a thousand.
	Items []Grant `json:"items,omitempty" jsonschema:"the grants, where there were a thousand at most"`
	Cut   *Cut    `json:"cut,omitempty" jsonschema:"what was cut, where there may be more"`
	GrantCount
}

// Cut revokes many grants at once.
type Cut struct {
	ID        string    `json:"id"`
	At        time.Time `json:"at"`
	User      string    `json:"user,omitempty"`
	Client    string    `json:"client,omitempty"`
	Resource  string    `json:"resource,omitempty"`
	Connector string    `json:"connector,omitempty"`
	All       bool      `json:"all,omitempty"`
	By        string    `json:"by"`
}

func cutOf(c storage.Cut) Cut {
	return Cut{
		ID: c.ID, At: c.At, User: c.UserID, Client: c.ClientID, Resource: c.Resource, Connector: c.Connector,
		All: c.All, By: string(c.By),
	}
}

// Operations that revoke grants.
var (
	GrantRevoke = define(Spec{
		Name: "grant revoke", Method: "DELETE", Path: "/grants/{id}", Fresh: true,
		Takes:   true,
		Summary: "Revoke a grant",
		Details: "Revokes a grant by its id, at once. A helper (sub-agent) of an application can be revoked by itself,\n" +
			"and so can all grants of a user, a client, an MCP server or a provider.",
	}, (*Service).revokeGrant)
	GrantRevokeMany = define(Spec{
		Name: "grant revoke-many", Method: "POST", Path: "/grants/revoke", Fresh: true,
		Takes:   true,
		Summary: "Revoke the grants of a user, a client, an MCP server, a provider, or all",
	}, (*Service).revokeGrants)
	GrantFinish = define(Spec{
		Name: "grant finish", Method: "POST", Path: "/grants/finish", Summary: "Finish an interrupted revocation",
		Details: "Finishes a revocation of very many grants that was interrupted while no server runs. Such a\n" +
			"revocation ends access at once; the command or a running server then marks each grant as revoked for\n" +
			"the status lists.",
	}, (*Service).finishCuts)
)

func (s *Service) revokeGrant(ctx context.Context, in GrantID) (Grant, error) {
	g, err := s.FindGrant(ctx, in.ID)
	if err != nil {
		return Grant{}, err
	}
	views, err := s.viewGrants(ctx, []storage.Grant{g})
	if err != nil {
		return Grant{}, err
	}
	app, err := s.Store.GrantApplication(ctx, g.ID, s.Now())
	if err != nil && !errors.Is(err, storage.ErrNotFound) { // a machine's grant has no application
		return Grant{}, err
	}
	if err := s.Store.WithdrawGrant(ctx, g.ID, storage.ByOperator, s.Now()); err != nil {
		return Grant{}, err
	}
	var of []slog.Attr
	if app.Key != "" {
		of = append(of, audit.Application(app))
	}
	s.RecordRevoked(ctx, g, of...)
	return views[0], nil
}

// RecordRevoked records that a grant was revoked.
func (s *Service) RecordRevoked(ctx context.Context, g storage.Grant, more ...slog.Attr) {
	s.Audit.Record(ctx, audit.GrantRevoked,
		append(more, audit.Grant(g), slog.String("client_id", g.ClientID))...)
}

// revokeGrants revokes the selected grants with one cut. It records each grant, or only the cut if
// there are too many.
func (s *Service) revokeGrants(ctx context.Context, in GrantsToEnd) (out GrantsEnded, err error) {
	sel, _, err := s.selection(ctx, in.Which)
	if err != nil {
		return out, err
	}
	if sel.Connector, sel.All = in.Provider, in.All; sel.Check() != nil {
		return out, fault(ErrInvalid, "name the grants by user, client or resource, or by provider, or ask for all")
	}
	some := SomeGrants{More: true} // grants of a provider are not counted before they are revoked
	if in.Provider != "" {
		err = s.knowsProvider(ctx, in.Provider)
	} else {
		some, err = s.SomeGrants(ctx, sel)
	}
	if err != nil {
		return out, err
	}
	pauses, err := s.pausesOf(ctx, sel)
	switch {
	case err != nil:
		return out, err
	case len(some.List) == 0 && !some.More && len(pauses) == 0:
		return out, fault(ErrNotFound, "there is no live grant of that kind; see: mcp-authd grant list")
	}
	out.GrantCount = some.Count()
	if out.Pauses = len(pauses); !some.More {
		if out.Items, err = s.viewGrants(ctx, some.List); err != nil {
			return out, err
		}
	}
	cut, err := s.Store.CutGrants(ctx, sel, storage.ByOperator, s.Now())
	if err != nil {
		return out, err
	}
	for _, p := range pauses {
		s.Audit.Record(ctx, audit.GrantResumed, audit.Pause(p))
	}
	if some.More {
		shown := cutOf(cut)
		out.Cut = &shown
		s.Audit.Record(ctx, audit.GrantsRevoked, slog.String("user", sel.UserID),
			slog.String("client_id", sel.ClientID), slog.String("resource", sel.Resource),
			slog.String("connector", sel.Connector))
	} else {
		for _, g := range some.List {
			s.RecordRevoked(ctx, g)
		}
	}
	return out, nil
}

// knowsProvider returns an error if a provider is not configured and no session came from it. A
// removed provider may still have sessions.
func (s *Service) knowsProvider(ctx context.Context, id string) error {
	known := s.Config.ProviderIDs()
	if slices.Contains(known, id) {
		return nil
	}
	sessions, err := toTheEnd(
		func(after string, limit int) ([]storage.Upstream, error) {
			return s.Store.ListUpstreams(ctx, after, limit)
		},
		func(u storage.Upstream) string { return u.ID },
	)
	if err != nil {
		return err
	}
	known = slices.Clone(known)
	for _, u := range sessions {
		if u.Connector == id {
			return nil
		}
		known = append(known, u.Connector)
	}
	slices.Sort(known)
	if known = slices.Compact(known); len(known) == 0 {
		return fault(ErrNotFound, "there is no provider %q, and no other one", id)
	}
	return fault(ErrNotFound, "there is no provider %q; there are: %s", id, strings.Join(known, ", "))
}

// finishCuts returns the unfinished cuts. A server continues them; a command with direct database
// access finishes them itself.
func (s *Service) finishCuts(ctx context.Context, _ None) (Page[Cut], error) {
	cuts, err := s.Store.PendingCuts(ctx, s.Now())
	if err != nil {
		return Page[Cut]{}, err
	}
	out := make([]Cut, 0, len(cuts))
	for _, c := range cuts {
		out = append(out, cutOf(c))
	}
	return Page[Cut]{Items: out}, nil
}

// Unfinished extends the error of an operation that does not find its object. If an earlier command
// was interrupted there, it says how to finish it.
func (s *Service) Unfinished(ctx context.Context, err error, like func(storage.Cut) bool) error {
	cuts, unread := s.Store.PendingCuts(ctx, s.Now())
	if unread != nil || !slices.ContainsFunc(cuts, like) {
		return err
	}
	return fmt.Errorf(
		"%w; if an earlier command was interrupted there, access has ended; mark the remaining grants with: mcp-authd grant finish",
		err,
	)
}
