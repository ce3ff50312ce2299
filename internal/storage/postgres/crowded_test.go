package postgres

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/testkit/pgtest"
)

// TestASweepOfManySignInsLeavesNoneBehind: issue 35, 10. Sweeps with the server's limit end all but 64 of one user's
// grants to a client, a bounded number at a time.
func TestASweepOfManySignInsLeavesNoneBehind(t *testing.T) {
	const all, limit = 6000, 2000
	url, now := pgtest.Start(t).Database(t), time.Now()
	s := open(t, url, Options{})
	defer s.Close()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	_, err = conn.Exec(t.Context(), `INSERT INTO grants (id, client_id, user_id, resource, scopes, auth_time, created_at,
			expires_at, code_hash, code_redirect, code_challenge, code_expires_at, code_used_at, sweep_at)
		SELECT 'grt_' || md5(i::text), 'mcp_hosted', 'usr_1', 'https://mcp.example.com/mcp', '["mcp"]', $2::bigint, $2,
			$3::bigint, sha256(i::text::bytea), '', '', $2, $2, $3 FROM generate_series(1, $1::bigint) i`,
		all, now.Add(-time.Hour).UnixMilli(), now.Add(time.Hour).UnixMilli())
	if err != nil {
		t.Fatal(err)
	}
	for left := all; left > 64; {
		n, err := s.Sweep(t.Context(), storage.Retention{Now: now}, limit)
		if err != nil || n > limit+1000 {
			t.Fatalf("one sweep ended %d grants: %v", n, err)
		}
		if left -= n; n == 0 {
			t.Fatalf("sweeps leave %d, want 64", left)
		}
	}
}
