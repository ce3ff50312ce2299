package storage

import (
	"context"
	"errors"
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// The bounds of the tree of nodes below a grant.
const (
	MaxNodeDepth = 4  // nodes on the way from the grant to a node, itself included
	MaxNodes     = 64 // nodes of a grant that have not expired, cut or not
)

// FirstNodeIndex is where the status indexes of nodes begin. Grants have those below it.
const FirstNodeIndex = 1 << 40

// ErrDeep: there are as many nodes above it as there may be.
var ErrDeep = errors.New("storage: too many nodes above it")

// Node is what a client has handed to a helper: less than its grant, or than another node, has. All
// nodes of a grant are a tree; what is above a node holds it.
type Node struct {
	ID        string // "nod_" + random
	GrantID   string
	ParentID  string // the node that it hangs from; "": the grant itself
	Name      string // of the helper, as the client says
	Scopes    oauth.Scopes
	CreatedAt time.Time
	ExpiresAt time.Time // of its token; no later than the end of what is above it

	Depth       int       // 1 for a node that hangs from the grant; the store sets it
	StatusIndex int64     // its place in the status lists; the store assigns it
	CutAt       time.Time // when it was cut itself; zero: it was not
}

// Nodes holds the nodes of grants.
//
// A node is live until it expires, and while its grant gives something and neither it nor a node
// above it is cut. That is found out when it is looked at: a cut is one row, and a node that is
// added below a cut one at that moment is as dead as the others there.
type Nodes interface {
	// AddNode stores a node, and returns it with what the store sets. ErrNotFound for an unknown grant,
	// or a parent that is none of its nodes; ErrRevoked when the grant has ended, or the parent or a node
	// above it is cut; ErrPaused; ErrExpired when the grant or the parent has expired, or would before
	// the node; ErrDeep; ErrFull when the grant has MaxNodes: of N that are added at once no more are.
	AddNode(ctx context.Context, n Node) (Node, error)
	// CutNode cuts a node of a grant ("": of whichever), and returns it. No error when it is cut; ErrNotFound when
	// there is none, as after its expiry.
	CutNode(ctx context.Context, id, grantID string, now time.Time) (Node, error)
	// Nodes returns the live nodes of grants, the oldest first.
	Nodes(ctx context.Context, grantIDs []string, now time.Time) ([]Node, error)
}
