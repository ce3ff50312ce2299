package admin

import (
	"context"

	"github.com/mcp-authd/mcp-authd/storage"
)

// trustLinksOf reads up to limit people of an issuer, "" for any, or the names of an account.
func (s *Service) trustLinksOf(
	ctx context.Context, userID, issuer string, limit int,
) (out []storage.TrustLink, err error) {
	var after storage.TrustName
	for len(out) < limit {
		page, err := s.Store.ListTrustLinks(ctx, userID, issuer, after, min(limit-len(out), 100))
		if err != nil {
			return nil, err
		}
		if len(page) == 0 {
			break
		}
		out, after = append(out, page...), page[len(page)-1].TrustName
	}
	return out, nil
}
