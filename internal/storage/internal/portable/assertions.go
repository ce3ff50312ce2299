package portable

import (
	"context"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

// trustLinks implements a verb of storage.TrustLinks.
type trustLinks struct{ db Engine }

// ListTrustLinks implements storage.TrustLinks.
func (s trustLinks) ListTrustLinks(
	ctx context.Context, userID, issuer string, after storage.TrustName, limit int,
) (out []storage.TrustLink, err error) {
	err = s.db.Read(ctx, "ListTrustLinks", func(c Conn) error {
		out, err = Each(c, func(row Row) (storage.TrustLink, error) {
			var r column.TrustLinkRow
			err := row.Scan(r.Dest()...)
			return r.Link(), err
		}, "SELECT "+column.TrustLinkColumns+` FROM trust_links WHERE ($1 = '' OR user_id = $1) AND ($2 = '' OR issuer = $2)
			AND (issuer, tenant, kind, subject) > ($3, $4, $5, $6) ORDER BY issuer, tenant, kind, subject LIMIT $7`,
			userID, issuer, after.Issuer, after.Tenant, string(after.Kind), after.Subject, max(limit, 0))
		return err
	})
	return out, err
}
