package column

import (
	"errors"
	"fmt"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// NodeColumns are the columns of a node that are read.
const NodeColumns = "id, grant_id, parent_id, name, scopes, created_at, expires_at, depth, seq, cut_at"

// NodeIsCut returns the condition that a node, or one above it, is cut. The index on grant_id finds
// the few nodes. position is the database's function that finds a text in another.
func NodeIsCut(node, position string) string {
	return fmt.Sprintf("EXISTS (SELECT 1 FROM nodes a WHERE a.grant_id = %[1]s.grant_id AND a.cut_at IS NOT NULL"+
		" AND (a.id = %[1]s.id OR %[2]s(%[1]s.above, a.id || ' ') > 0))", node, position)
}

// NodeRow reads NodeColumns.
type NodeRow struct {
	n                storage.Node
	scopes           string
	created, expires int64
	seq              int64
	cut              *int64
}

func (r *NodeRow) Dest() []any {
	return []any{
		&r.n.ID, &r.n.GrantID, &r.n.ParentID, &r.n.Name, &r.scopes, &r.created, &r.expires, &r.n.Depth, &r.seq, &r.cut,
	}
}

func (r *NodeRow) Node() (storage.Node, error) {
	n := r.n
	scopes, err := ParseList[string](r.scopes)
	n.Scopes = scopes
	n.CreatedAt, n.ExpiresAt, n.CutAt = Time(r.created), Time(r.expires), OptTime(r.cut)
	n.StatusIndex = storage.FirstNodeIndex + r.seq
	return n, err
}

// NodeValues returns the values for adding a node: id, grant_id, parent_id, name, scopes,
// created_at, expires_at.
func NodeValues(n storage.Node) []any {
	return []any{n.ID, n.GrantID, n.ParentID, n.Name, List(n.Scopes), Millis(n.CreatedAt), Millis(n.ExpiresAt)}
}

// NodePlace is the grant and the parent of a node that was not stored.
type NodePlace struct {
	Grant     storage.Grant
	GrantCut  bool
	Parent    storage.Node // zero ID: the parent does not exist
	ParentCut bool         // the parent or a node above it
}

// Cause returns why a node was not stored.
func (p NodePlace) Cause(n storage.Node) error {
	ends := p.Grant.ExpiresAt
	if p.Parent.ID != "" && p.Parent.ExpiresAt.Before(ends) {
		ends = p.Parent.ExpiresAt
	}
	switch {
	case !p.Grant.RevokedAt.IsZero() || p.GrantCut || p.ParentCut:
		return storage.ErrRevoked
	case n.ParentID != p.Parent.ID:
		return storage.ErrNotFound
	case !n.CreatedAt.Before(ends) || n.ExpiresAt.After(ends):
		return storage.ErrExpired
	case !p.Grant.PausedAt.IsZero():
		return storage.ErrPaused
	case p.Parent.Depth >= storage.MaxNodeDepth:
		return storage.ErrDeep
	}
	return storage.ErrFull
}

var errNoNode = errors.New("a node needs an id, a grant and an end that is to come")

// CheckNode refuses invalid nodes that the statements would accept.
func CheckNode(n storage.Node) error {
	if n.ID == "" || n.GrantID == "" || !n.ExpiresAt.After(n.CreatedAt) {
		return errNoNode
	}
	return nil
}
