package portable

import (
	"context"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

const cutNode = `UPDATE nodes SET cut_at = coalesce(cut_at, $3)
WHERE id = $1 AND $2 IN ('', grant_id) AND expires_at > $3 RETURNING ` + column.NodeColumns

// nodes implements a verb of storage.Nodes.
type nodes struct{ db Engine }

// CutNode implements storage.Nodes.
func (s nodes) CutNode(ctx context.Context, id, grantID string, now time.Time) (n storage.Node, err error) {
	err = s.db.Write(ctx, "CutNode", func(c Conn) error {
		var row column.NodeRow
		err := c.One(row.Dest(), cutNode, id, grantID, column.Millis(now))
		if err == nil {
			n, err = row.Node()
		}
		return err
	})
	return n, err
}
