package sqlite

import (
	"fmt"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// manyGrants inserts ?3 grants, ?4 of each user, that were given at ?1 and expire at ?2.
const manyGrants = `INSERT INTO grants (id, client_id, user_id, resource, scopes, auth_time, created_at, expires_at,
		code_hash, code_redirect, code_challenge, code_expires_at, code_used_at, sweep_at, status_index)
	WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?3)
	SELECT 'grt_' || hex(randomblob(13)), 'mcp_hosted', 'usr_' || ((i - 1) / ?4), 'https://mcp.example.com/mcp', '["mcp"]',
		?1, ?1, ?2, randomblob(32), '', '', ?1, ?1, ?2, i FROM n`

// TestASweepOfManySignInsIsBounded: issue 12, 3.2; OP-06. A user with very many grants for one client delays no other
// user: one batch reads a thousand of them. Sweeps leave none behind.
func TestASweepOfManySignInsIsBounded(t *testing.T) {
	for _, limit := range []int{100, 2000} {
		s, edit := openEditable(t)
		now, left := time.Now(), 6000
		edit(manyGrants, now.Add(-time.Hour).UnixMilli(), now.Add(time.Hour).UnixMilli(), left, left)
		for left > 64 {
			n, err := s.Sweep(t.Context(), storage.Retention{Now: now}, limit)
			if err != nil || n > limit+1000 {
				t.Fatalf("one sweep of %d ended %d grants: %v", limit, n, err)
			}
			if left -= n; n == 0 {
				t.Fatalf("sweeps of %d leave %d, want 64", limit, left)
			}
		}
	}
}

// TestVerbsComeBetweenTheStepsOfAWalk: issue 12, 3.2. A walk over grants that all stay takes long,
// and yields after each step.
func TestVerbsComeBetweenTheStepsOfAWalk(t *testing.T) {
	s, edit := openEditable(t)
	now := time.Now()
	edit(manyGrants, now.Add(-time.Hour).UnixMilli(), now.Add(time.Hour).UnixMilli(), 40_000, 5)
	swept := make(chan error, 1)
	go func() {
		n, err := s.Sweep(t.Context(), storage.Retention{Now: now}, 100)
		if err == nil && n != 0 {
			err = fmt.Errorf("%d records went", n)
		}
		swept <- err
	}()
	for between := 0; ; between++ {
		select {
		case err := <-swept:
			if err != nil || between < 100 {
				t.Errorf("%d verbs came between, want 100 of 400 steps: %v", between, err)
			}
			return
		default:
		}
		if err := s.Spend(t.Context(), "test", fmt.Sprint(between), now.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
}
