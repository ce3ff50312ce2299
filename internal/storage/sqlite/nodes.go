package sqlite

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

// The conditions that the nodes n and p, or a node above them, are cut.
var (
	nodeIsCut   = column.NodeIsCut("n", "instr")
	parentIsCut = column.NodeIsCut("p", "instr")
)

// addNode stores the node ?1 of the grant ?2 below the node ?3, if all conditions hold. It counts
// and stores in one statement.
var addNode = `INSERT INTO nodes (id, grant_id, parent_id, name, scopes, created_at, expires_at, depth, above)
SELECT ?1, g.id, ?3, ?4, ?5, ?6, ?7, coalesce(p.depth, 0) + 1, coalesce(p.above || p.id || ' ', '')
FROM grants g LEFT JOIN nodes p ON p.id = ?3 AND p.grant_id = g.id
WHERE g.id = ?2 AND g.revoked_at IS NULL AND g.paused_at IS NULL AND g.expires_at > ?6 AND g.expires_at >= ?7 AND NOT ` + isCut + `
	AND (?3 = '' OR p.depth < ` + strconv.Itoa(storage.MaxNodeDepth) + ` AND p.expires_at > ?6 AND p.expires_at >= ?7
		AND NOT ` + parentIsCut + `)
	AND (SELECT count(*) FROM nodes n WHERE n.grant_id = g.id AND n.expires_at > ?6) < ` + strconv.Itoa(storage.MaxNodes) + `
RETURNING depth, seq`

var liveNodes = "SELECT " + column.NodeColumns + ` FROM nodes n WHERE grant_id IN (SELECT value FROM json_each(?1)) AND expires_at > ?2 AND NOT ` + nodeIsCut + `
	AND EXISTS (SELECT 1 FROM grants g WHERE g.id = n.grant_id AND g.revoked_at IS NULL AND NOT ` + isCut + `) ORDER BY seq`

// AddNode implements storage.Nodes.
func (s *Store) AddNode(ctx context.Context, n storage.Node) (storage.Node, error) {
	if err := column.CheckNode(n); err != nil {
		return storage.Node{}, err
	}
	err := s.write(ctx, "AddNode", func(c *conn) error {
		var seq int64
		err := c.one([]any{&n.Depth, &seq}, addNode, column.NodeValues(n)...)
		if errors.Is(err, storage.ErrNotFound) {
			return refuseNode(c, n)
		}
		n.StatusIndex = storage.FirstNodeIndex + seq
		return err
	})
	return n, err
}

// refuseNode returns why a node was not stored.
func refuseNode(c *conn, n storage.Node) error {
	var p column.NodePlace
	var grant column.GrantRow
	var parent column.NodeRow
	err := c.one(append(grant.Dest(), &p.GrantCut), "SELECT "+column.GrantRead+", "+isCut+" FROM grants g WHERE id = ?",
		n.GrantID)
	if err == nil {
		p.Grant, err = grant.Grant()
	}
	if err != nil {
		return err
	}
	err = c.one(append(parent.Dest(), &p.ParentCut),
		"SELECT "+column.NodeColumns+", "+nodeIsCut+" FROM nodes n WHERE id = ? AND grant_id = ?", n.ParentID, n.GrantID)
	switch {
	case err == nil:
		p.Parent, err = parent.Node()
	case errors.Is(err, storage.ErrNotFound):
		err = nil
	}
	if err != nil {
		return err
	}
	return p.Cause(n)
}

// Nodes implements storage.Nodes.
func (s *Store) Nodes(ctx context.Context, grantIDs []string, now time.Time) (out []storage.Node, err error) {
	if len(grantIDs) == 0 {
		return nil, nil
	}
	err = s.read(ctx, "Nodes", func(c *conn) error {
		out, err = each(c, func(row scanner) (storage.Node, error) {
			var r column.NodeRow
			if err := row.Scan(r.Dest()...); err != nil {
				return storage.Node{}, err
			}
			return r.Node()
		}, liveNodes, column.List(grantIDs), column.Millis(now))
		return err
	})
	return out, err
}
