package postgres

import (
	"context"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

const untie = "DELETE FROM identities WHERE user_id = $1 AND connector = $5 AND subject = $6 AND NOT EXISTS (" +
	column.HomeIdentity + "$1 AND h.connector = $5 AND h.subject = $6) AND (" + aPassword +
	" OR " + aProvider + " AND (connector <> $5 OR subject <> $6)) OR " + aPasskey + "))"

// Unlink implements storage.Identities.
func (s *Store) Unlink(ctx context.Context, u storage.Untie) (ended []storage.Upstream, err error) {
	remove := func(ctx context.Context, q querier) error {
		n, err := exec(ctx, q, untie, append(letIn(u.UserID, u.By), u.Connector, u.Subject)...)
		err = lastOf(ctx, q, n, err, "SELECT 1 FROM identities WHERE user_id = $1 AND connector = $2 AND subject = $3",
			u.UserID, u.Connector, u.Subject)
		if err != nil {
			return err
		}
		ended, err = endUpstreams(ctx, q, "user_id = $1 AND connector = $2 AND subject = $3",
			[]any{u.UserID, u.Connector, u.Subject}, u.Reason, u.Now)
		return err
	}
	err = s.held(ctx, "Unlink", holdUser, u.UserID, while(u.UserID, u.In, remove))
	return ended, err
}
