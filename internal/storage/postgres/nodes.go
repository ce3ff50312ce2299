package postgres

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

// The conditions that the nodes n and p, or a node above them, are cut.
var (
	nodeIsCut   = column.NodeIsCut("n", "strpos")
	parentIsCut = column.NodeIsCut("p", "strpos")
)

// holdGrant locks a grant against verbs that change it.
const holdGrant = "SELECT id FROM grants WHERE id = $1 FOR NO KEY UPDATE"

// addNode stores the node $1 of the grant $2 below the node $3, if all conditions hold. The grant
// is locked, so that its nodes are counted one after the other.
var addNode = `INSERT INTO nodes (id, grant_id, parent_id, name, scopes, created_at, expires_at, depth, above)
SELECT $1::text, g.id, $3::text, $4::text, $5::text, $6::bigint, $7::bigint, coalesce(p.depth, 0) + 1, coalesce(p.above || p.id || ' ', '')
FROM grants g LEFT JOIN nodes p ON p.id = $3 AND p.grant_id = g.id
WHERE g.id = $2 AND g.revoked_at IS NULL AND g.paused_at IS NULL AND g.expires_at > $6 AND g.expires_at >= $7 AND NOT ` + isCut + `
	AND ($3 = '' OR p.depth < ` + strconv.Itoa(storage.MaxNodeDepth) + ` AND p.expires_at > $6 AND p.expires_at >= $7
		AND NOT ` + parentIsCut + `)
	AND (SELECT count(*) FROM nodes n WHERE n.grant_id = g.id AND n.expires_at > $6) < ` + strconv.Itoa(storage.MaxNodes) + `
RETURNING depth, seq`

var liveNodes = "SELECT " + column.NodeColumns + ` FROM nodes n WHERE grant_id = ANY ($1) AND expires_at > $2 AND NOT ` + nodeIsCut + `
	AND EXISTS (SELECT 1 FROM grants g WHERE g.id = n.grant_id AND g.revoked_at IS NULL AND NOT ` + isCut + `) ORDER BY seq`

// AddNode implements storage.Nodes.
func (s *Store) AddNode(ctx context.Context, n storage.Node) (storage.Node, error) {
	if err := column.CheckNode(n); err != nil {
		return storage.Node{}, err
	}
	err := s.tx(ctx, "AddNode", func(ctx context.Context, q querier) error {
		var held string
		if err := one(ctx, q, []any{&held}, holdGrant, n.GrantID); err != nil {
			return err
		}
		var seq int64
		err := one(ctx, q, []any{&n.Depth, &seq}, addNode, column.NodeValues(n)...)
		if errors.Is(err, pgx.ErrNoRows) {
			return refuseNode(ctx, q, n)
		}
		n.StatusIndex = storage.FirstNodeIndex + seq
		return err
	})
	return n, err
}

// refuseNode returns why a node was not stored.
func refuseNode(ctx context.Context, q querier, n storage.Node) error {
	var p column.NodePlace
	var grant column.GrantRow
	var parent column.NodeRow
	err := one(ctx, q, append(grant.Dest(), &p.GrantCut),
		"SELECT "+column.GrantRead+", "+isCut+" FROM grants g WHERE id = $1", n.GrantID)
	if err == nil {
		p.Grant, err = grant.Grant()
	}
	if err != nil {
		return err
	}
	err = one(ctx, q, append(parent.Dest(), &p.ParentCut),
		"SELECT "+column.NodeColumns+", "+nodeIsCut+" FROM nodes n WHERE id = $1 AND grant_id = $2", n.ParentID, n.GrantID)
	switch {
	case err == nil:
		p.Parent, err = parent.Node()
	case errors.Is(err, pgx.ErrNoRows):
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
	err = s.do(ctx, "Nodes", func(ctx context.Context, q querier) error {
		out, err = each(ctx, q, func(row pgx.CollectableRow) (storage.Node, error) {
			var r column.NodeRow
			if err := row.Scan(r.Dest()...); err != nil {
				return storage.Node{}, err
			}
			return r.Node()
		}, liveNodes, grantIDs, column.Millis(now))
		return err
	})
	return out, err
}
