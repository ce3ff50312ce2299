package sqlite

import (
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/storage"
)

// TestASweepOfManySignInsIsBounded: issue 12, 3.2. A person with a great many grants for one client
// holds nobody up: one sweep looks at a thousand of them.
func TestASweepOfManySignInsIsBounded(t *testing.T) {
	s, edit := openEditable(t)
	now := time.Now()
	past, later := now.Add(-time.Hour).UnixMilli(), now.Add(time.Hour).UnixMilli()
	edit(`INSERT INTO grants (id, client_id, user_id, resource, scopes, auth_time, created_at, expires_at,
			code_hash, code_redirect, code_challenge, code_expires_at, code_used_at, sweep_at, status_index)
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
		SELECT 'grt_' || hex(randomblob(13)), 'mcp_hosted', 'usr_1', 'https://mcp.example.com/mcp', '["mcp"]', ?1, ?1, ?2,
			randomblob(32), '', '', ?1, ?1, ?2, i FROM n`, past, later)
	left := 3000
	for left > 64 {
		n, err := s.Sweep(t.Context(), storage.Retention{Now: now}, 100)
		if err != nil || n > 1000 {
			t.Fatalf("one sweep ended %d grants: %v", n, err)
		}
		if left -= n; n == 0 {
			t.Fatalf("%d are left, want 64", left)
		}
	}
}
