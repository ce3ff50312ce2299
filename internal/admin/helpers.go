package admin

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// Helper is a sub-agent of an application, with fewer permissions than the application.
type Helper struct {
	ID        string    `json:"id"`
	Grant     string    `json:"grant"`
	Parent    string    `json:"parent,omitempty" jsonschema:"the helper that handed on the token"`
	Name      string    `json:"name" jsonschema:"name that the client gave it"`
	Scope     string    `json:"scope"`
	Depth     int       `json:"depth"`
	CreatedAt time.Time `json:"created_at"`
	ExpiresAt time.Time `json:"expires_at"`
}

// HelperID names a helper.
type HelperID struct {
	ID string `json:"id" jsonschema:"the id of the helper, nod_..."`
}

// HelperRevoke revokes a sub-agent.
var HelperRevoke = define(Spec{
	Name: "grant revoke-helper", Method: "DELETE", Path: "/helpers/{id}", Fresh: true,
	Takes:   true,
	Summary: "Revoke a helper (sub-agent), with the helpers below it",
}, (*Service).revokeHelper)

func helperOf(n storage.Node) Helper {
	return Helper{
		ID: n.ID, Grant: n.GrantID, Parent: n.ParentID, Name: n.Name, Scope: n.Scopes.String(), Depth: n.Depth,
		CreatedAt: n.CreatedAt, ExpiresAt: n.ExpiresAt,
	}
}

// addHelpers adds the live sub-agents of each grant to its view, each after its parent.
func (s *Service) addHelpers(ctx context.Context, views []Grant) error {
	ids := make([]string, len(views))
	for i, v := range views {
		ids[i] = v.ID
	}
	nodes, err := s.Store.Nodes(ctx, ids, s.Now())
	if err != nil {
		return err
	}
	below := map[string][]storage.Node{} // children by the ID of their parent node or grant
	for _, n := range nodes {
		from := n.ParentID
		if from == "" {
			from = n.GrantID
		}
		below[from] = append(below[from], n)
	}
	for i := range views {
		views[i].Helpers = branches(nil, below, views[i].ID)
	}
	return nil
}

func branches(out []Helper, below map[string][]storage.Node, from string) []Helper {
	for _, n := range below[from] {
		out = branches(append(out, helperOf(n)), below, n.ID)
	}
	return out
}

func (s *Service) revokeHelper(ctx context.Context, in HelperID) (Helper, error) {
	n, err := s.Store.CutNode(ctx, in.ID, "", s.Now())
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return Helper{}, fault(ErrNotFound,
			"there is no helper %q, or its token has expired; see: mcp-authd grant list", in.ID)
	case err != nil:
		return Helper{}, err
	}
	g, err := s.Store.Grant(ctx, n.GrantID)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return Helper{}, err
	}
	s.Audit.Record(ctx, audit.HelperCut, audit.Grant(g), slog.String("client_id", g.ClientID), audit.Node(n),
		slog.String("revoked_by", string(storage.ByOperator)))
	return helperOf(n), nil
}
