package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/testkit/pgtest"
)

// Issue 12, H3: the grants of a cut are marked batch by batch even if PostgreSQL has no, or old,
// statistics on them. It then assumes few grants, and must not search a batch for each of them.
func TestH3ACutIsFollowedWithoutStatistics(t *testing.T) {
	ctx := context.Background()
	s := open(t, pgtest.Start(t).Database(t), Options{})
	for _, sql := range []string{
		"CREATE INDEX grants_client ON grants (client_id, id)", // dropped an hour after an upgrade
		"ALTER TABLE grants SET (autovacuum_enabled = false)",
		`INSERT INTO grants (id, client_id, user_id, resource, scopes, auth_time, created_at, expires_at, code_hash, code_redirect, code_challenge, code_expires_at, sweep_at)
	SELECT 'grant ' || n, 'c', 'u', 'r', '[]', 0, 0, 0, decode(md5(n::text), 'hex'), '', '', 0, 0 FROM generate_series(1, 30000) n`,
	} {
		if _, err := s.pool.Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	cut, err := s.CutGrants(ctx, storage.Selection{ClientID: "c"}, storage.ByOperator, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for range 4 {
		if cut, err = s.FollowCut(ctx, cut.ID, time.Now(), 15000); err != nil {
			t.Fatal(err)
		}
	}
	if cut.Grants != 30000 {
		t.Errorf("%d of 30000 grants are marked", cut.Grants)
	}
}
