package account

import (
	"context"
	"errors"
	"log/slog"

	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// HelpersView is the content of the page about an application's sub-agents.
type HelpersView struct {
	Visit storage.Visit
	Connection
	Tree []Helper
}

// Helper is a sub-agent and the sub-agents below it.
type Helper struct {
	storage.Node
	Below []Helper
}

// HelpersOf reads the sub-agents of a grant of the browser's user. It returns nil without a
// signed-in user, and storage.ErrNotFound if the grant has ended or belongs to another user
// (PE-08).
func (a *Page) HelpersOf(ctx context.Context, token storage.Hash, grantID string) (*HelpersView, error) {
	visit, err := a.Browsers.Visit(ctx, token, storage.VisitKey{})
	if err != nil || visit == nil {
		return nil, err
	}
	now := a.Now()
	c, err := a.Store.Connection(ctx, visit.User.ID, grantID, now)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, err
	}
	if err != nil {
		return nil, refusal.Unavailable(err)
	}
	of := each([]storage.Connection{c})
	if err := a.describe(ctx, of, map[string]storage.Client{}); err != nil {
		return nil, err
	}
	grants, err := a.grantsOf(ctx, visit.User.ID, grantID)
	if err != nil {
		return nil, err
	}
	nodes, err := a.Store.Nodes(ctx, grants, now)
	if err != nil {
		return nil, refusal.Unavailable(err)
	}
	return &HelpersView{Visit: *visit, Connection: of[0], Tree: tree(nodes, "")}, nil
}

// tree returns the nodes below a node, or the whole tree for "". The depth is at most
// storage.MaxNodeDepth.
func tree(nodes []storage.Node, from string) (out []Helper) {
	for _, n := range nodes {
		if n.ParentID == from {
			out = append(out, Helper{Node: n, Below: tree(nodes, n.ID)})
		}
	}
	return out
}

// count sets the number of sub-agents of each connection.
func (a *Page) count(ctx context.Context, lists ...[]Connection) error {
	var ids []string
	for _, list := range lists {
		for _, c := range list {
			ids = append(ids, c.Grants...)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	nodes, err := a.Store.Nodes(ctx, ids, a.Now())
	if err != nil {
		return refusal.Unavailable(err)
	}
	of := map[string]int{}
	for _, n := range nodes {
		of[n.GrantID]++
	}
	for _, list := range lists {
		for i := range list {
			for _, id := range list[i].Grants {
				list[i].Helpers += of[id]
			}
		}
	}
	return nil
}

// CutHelper revokes a sub-agent of a grant, and the sub-agents below it (AS-243).
func (a *Page) CutHelper(ctx context.Context, p Person, grantID, id string) (Outcome, error) {
	c, err := a.connection(ctx, p, grantID)
	var n storage.Node
	var grants []string
	if err == nil {
		grants, err = a.grantsOf(ctx, p.UserID, grantID)
	}
	if err == nil {
		err = storage.ErrNotFound
	}
	for _, grant := range grants { // the sub-agent belongs to one of them
		if !errors.Is(err, storage.ErrNotFound) {
			break
		}
		n, err = a.Store.CutNode(ctx, id, grant, a.Now())
	}
	c.application = storage.Application{} // only one of its sub-agents ends
	return a.outcome(ctx, HelperCut, err, audit.HelperCut, c, audit.Node(n),
		slog.String("revoked_by", string(storage.ByPerson)))
}
