package postgres

import (
	"context"
	"fmt"

	"github.com/mcp-authd/mcp-authd/storage"
	"github.com/mcp-authd/mcp-authd/storage/internal/column"
)

// The statement of an approval. live holds the session against its deletion until
// the grant is there, so that whoever ends the sessions of a user and then revokes
// the grants misses none; the grant rests on what the session rests on. It needs no lock on the user or the client, which are
// rows that many share.
const (
	approveHead = `WITH live AS (
	SELECT u.id, s.upstream_id FROM sessions s JOIN users u ON u.id = s.user_id
	WHERE s.hash = $1 AND s.expires_at > $2 AND u.id = $6 AND NOT u.disabled
	FOR KEY SHARE OF s),
gone AS (SELECT id FROM clients WHERE id = $5 AND deleted_at IS NOT NULL),
ok AS (SELECT id, upstream_id FROM live WHERE NOT EXISTS (SELECT 1 FROM gone)),
consented AS (INSERT INTO consents (user_id, client_id, resource, scope, created_at)
	SELECT ok.id, $5, $7, s.scope, $2 FROM ok, unnest($18::text[]) AS s (scope)
	ON CONFLICT DO NOTHING),
granted AS (INSERT INTO grants (` + column.GrantColumns + `,
		code_hash, code_redirect, code_challenge, code_expires_at, sweep_at, upstream_id)
	SELECT $4::text, $5::text, $6::text, $7::text, $8::text, $9::bigint, $10::bigint, $11::bigint, $12::bigint,
		$13::bytea, $14::text, $15::text, $16::bigint, $17::bigint, ok.upstream_id FROM ok),
used AS (UPDATE clients SET last_used_at = $2
	WHERE id = $5 AND deleted_at IS NULL AND (last_used_at IS NULL OR last_used_at <= $3) AND EXISTS (SELECT 1 FROM ok))`

	// approveClient stores a client with its first grant.
	approveClient = `,
stored AS (INSERT INTO clients (` + column.ClientColumns + `)
	SELECT $19::text, $20::bytea, $21::text, $22::text, $23::text, $24::text, $25::bytea, $26::text, $27::text, $28::text, $29::text,
		$30::bytea, $31::bigint, $32::bigint FROM ok
	ON CONFLICT DO NOTHING)`

	approveTail = `
SELECT EXISTS (SELECT 1 FROM live), EXISTS (SELECT 1 FROM gone)`
)

// Approve implements storage.Approvals.
func (s *Store) Approve(ctx context.Context, a storage.Approval) error {
	sql := approveHead + approveTail
	args := approvalValues(a)
	if a.Client != nil {
		if a.Client.ID != a.Grant.ClientID {
			return fmt.Errorf("postgres: approve: client %q with a grant for %q", a.Client.ID, a.Grant.ClientID)
		}
		cl := *a.Client
		cl.LastUsedAt = a.Now
		sql = approveHead + approveClient + approveTail
		args = append(args, column.ClientValues(cl)...)
	}
	return s.do(ctx, "approve", func(ctx context.Context, q querier) error {
		var live, gone bool
		err := one(ctx, q, []any{&live, &gone}, sql, args...)
		switch {
		case err != nil:
			return err
		case !live:
			return storage.ErrNotFound
		case gone:
			return storage.ErrRevoked
		}
		return nil
	})
}

func approvalValues(a storage.Approval) []any {
	args := append(make([]any, 0, 32), a.Session[:], column.Millis(a.Now), column.Millis(a.Now.Add(-column.UsedEvery)))
	args = append(args, column.GrantValues(a.Grant)...)
	return append(args, a.Code.Hash[:], a.Code.RedirectURI, a.Code.Challenge, column.Millis(a.Code.ExpiresAt),
		column.Millis(a.Code.ExpiresAt.Add(column.UnusedFor)), column.Consents(a.Grant.Scopes))
}
