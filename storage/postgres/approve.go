package postgres

import (
	"context"
	"fmt"

	"github.com/mcp-authd/mcp-authd/storage"
	"github.com/mcp-authd/mcp-authd/storage/internal/column"
)

// The statement of an approval. live holds the session against its deletion until
// the grant is there, so that whoever ends the sessions of a user and then revokes
// the grants misses none; the grant rests on what the session rests on. It needs no lock on
// the user or the client, which are rows that many share: a client that is replaced, or a
// consent that is forgotten, while the statement runs comes after the approval, whose code
// goes to the place that was shown.
const (
	approveHead = `WITH live AS (
	SELECT u.id, s.upstream_id FROM sessions s JOIN users u ON u.id = s.user_id
	WHERE s.hash = $1 AND s.expires_at > $2 AND u.id = $6 AND NOT u.disabled AND NOT ` + column.IsSignedOut + `
	FOR KEY SHARE OF s),
gone AS (SELECT id FROM clients WHERE id = $5 AND deleted_at IS NOT NULL),
forgotten AS (SELECT r.scope FROM unnest($19::text[]) AS r (scope) WHERE NOT EXISTS (SELECT 1 FROM consents c
	WHERE c.user_id = $6 AND c.client_id = $5 AND c.resource = $7 AND c.scope = r.scope
	AND (c.place = $20 AND c.material = $21 OR c.place = '' AND $22)
	AND NOT ` + column.IsForgotten + `)),
`
	approveBody = `,
ok AS (SELECT id, upstream_id FROM live WHERE NOT EXISTS (SELECT 1 FROM gone)
	AND NOT EXISTS (SELECT 1 FROM forgotten) AND NOT EXISTS (SELECT 1 FROM changed)),
consented AS (INSERT INTO consents (user_id, client_id, resource, scope, created_at, place, material)
	SELECT ok.id, $5, $7, s.scope, $2, $20, $21 FROM ok, unnest($18::text[]) AS s (scope)
	ON CONFLICT (user_id, client_id, resource, place, scope) DO UPDATE SET material = excluded.material, created_at = excluded.created_at
		WHERE consents.material <> excluded.material),
granted AS (INSERT INTO grants (` + column.GrantColumns + `,
		code_hash, code_redirect, code_challenge, code_expires_at, sweep_at, upstream_id)
	SELECT $4::text, $5::text, $6::text, $7::text, $8::text, $9::bigint, $10::bigint, $11::bigint, $12::bigint,
		$13::bytea, $14::text, $15::text, $16::bigint, $17::bigint, ok.upstream_id FROM ok),
used AS (UPDATE clients SET last_used_at = $2
	WHERE id = $5 AND deleted_at IS NULL AND (last_used_at IS NULL OR last_used_at <= $3) AND EXISTS (SELECT 1 FROM ok))`

	// changedClient finds that the client is no longer the one that was shown; anyClient
	// does not look.
	changedClient = `changed AS (SELECT id FROM clients WHERE id = $5 AND deleted_at IS NULL
	AND (name, redirect_uris, grant_types, auth_method, jwks, jwks_uri, metadata)
	IS DISTINCT FROM ($25::text, $26::text, $27::text, $28::text, $29::bytea, $30::text, $34::bytea))`
	anyClient = `changed AS (SELECT id FROM clients WHERE false)`

	// approveClient stores a client with its first grant.
	approveClient = `,
stored AS (INSERT INTO clients (` + column.ClientColumns + `)
	SELECT $23::text, $24::bytea, $25::text, $26::text, $27::text, $28::text, $29::bytea, $30::text, $31::text, $32::text, $33::text,
		$34::bytea, $35::bigint, $36::bigint FROM ok
	ON CONFLICT DO NOTHING)`

	approveTail = `
SELECT EXISTS (SELECT 1 FROM live), EXISTS (SELECT 1 FROM gone), EXISTS (SELECT 1 FROM changed) OR EXISTS (SELECT 1 FROM forgotten)`
)

// Approve implements storage.Approvals.
func (s *Store) Approve(ctx context.Context, a storage.Approval) error {
	sql := approveHead + anyClient + approveBody + approveTail
	args := approvalValues(a)
	if a.Client != nil {
		if a.Client.ID != a.Grant.ClientID {
			return fmt.Errorf("postgres: approve: client %q with a grant for %q", a.Client.ID, a.Grant.ClientID)
		}
		cl := *a.Client
		cl.LastUsedAt = a.Now
		changed := changedClient
		if cl.Fleeting() {
			changed = anyClient
		}
		sql = approveHead + changed + approveBody + approveClient + approveTail
		args = append(args, column.ClientValues(cl)...)
	}
	return s.do(ctx, "approve", func(ctx context.Context, q querier) error {
		var live, gone, changed bool
		err := one(ctx, q, []any{&live, &gone, &changed}, sql, args...)
		switch {
		case err != nil:
			return err
		case !live:
			return storage.ErrNotFound
		case gone:
			return storage.ErrRevoked
		case changed:
			return storage.ErrChanged
		}
		return nil
	})
}

func approvalValues(a storage.Approval) []any {
	args := append(make([]any, 0, 36), a.Session[:], column.Millis(a.Now), column.Millis(a.Now.Add(-column.UsedEvery)))
	args = append(args, column.GrantValues(a.Grant)...)
	return append(args, a.Code.Hash[:], a.Code.RedirectURI, a.Code.Challenge, column.Millis(a.Code.ExpiresAt),
		column.Millis(a.Grant.ExpiresAt), column.Consents(a), column.Remembered(a), a.Place, a.Material[:], a.Unplaced)
}
