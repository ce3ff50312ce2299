package storage

import (
	"context"
	"errors"
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// The limits of the tree of nodes below a grant.
const (
	MaxNodeDepth = 4  // nodes on the path from the grant to a node, inclusive
	MaxNodes     = 64 // unexpired nodes of a grant, cut or not
)

// FirstNodeIndex is the first status index of nodes. Grants use smaller ones.
const FirstNodeIndex = 1 << 40

// ErrDeep: the node would be too deep in the tree.
var ErrDeep = errors.New("storage: too many nodes above it")

// Node is a client's delegation to a sub-agent: less than its grant, or the parent node, has. The
// nodes of a grant form a tree, where each level limits the levels below it.
type Node struct {
	ID        string // "nod_" + random
	GrantID   string
	ParentID  string // the parent node; "": the grant itself
	Name      string // the name of the sub-agent, as the client gives it
	Scopes    oauth.Scopes
	CreatedAt time.Time
	ExpiresAt time.Time // of its token; not later than the expiry of its parents

	Depth       int       // 1 directly below the grant; the store sets it
	StatusIndex int64     // position in the status lists; the store assigns it
	CutAt       time.Time // when this node itself was cut; zero: it was not
}

// Nodes stores the nodes of grants.
//
// A node is live until it expires, while its grant is active and neither it nor a node above it is
// cut. Each read checks this: a cut is one row, so a node that is added below a cut node at that
// moment is inactive like the others there.
type Nodes interface {
	// AddNode stores a node, and returns it with the fields that the store sets. ErrNotFound: the
	// grant is unknown, or the parent is not one of its nodes. ErrRevoked: the grant has ended, or
	// the parent or a node above it is cut. ErrPaused: the grant is paused. ErrExpired: the grant
	// or the parent has expired, or would expire before the node. ErrDeep: the parent is at
	// MaxNodeDepth. ErrFull: the grant has MaxNodes, a limit that also holds for concurrent calls.
	AddNode(ctx context.Context, n Node) (Node, error)
	// CutNode cuts a node of a grant ("": of any grant), and returns it. Cutting it again is not an
	// error. It returns ErrNotFound for an unknown or expired node.
	CutNode(ctx context.Context, id, grantID string, now time.Time) (Node, error)
	// Nodes returns the live nodes of grants, oldest first.
	Nodes(ctx context.Context, grantIDs []string, now time.Time) ([]Node, error)
}
