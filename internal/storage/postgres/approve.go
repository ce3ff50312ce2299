package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

// The parts of the approval statement. ok locks the session against deletion until the grant is
// stored. So a verb that ends a user's sessions and then revokes the grants misses no grant. The
// grant depends on the same upstream session as the browser session.
//
// The statement needs no lock on the user or the client, whose rows are shared by many. If a client
// is replaced meanwhile, the replacement comes after the approval, whose code goes to the place
// that was shown. Parts that an approval does not need are left out, because each costs time even
// without rows.
const (
	approveHead = `%s AS (
	SELECT u.id, s.upstream_id, s.agent, s.address, s.methods FROM turn, sessions s JOIN users u ON u.id = s.user_id
	WHERE s.hash = $1 AND s.expires_at > $2 AND u.id = $6 AND NOT u.disabled AND NOT ` + column.IsSignedOut + `
	AND NOT EXISTS (SELECT 1 FROM clients c WHERE c.id = $5 AND (c.deleted_at IS NOT NULL`
	// otherClient is the condition that the client differs from the client that was shown.
	otherClient = ` OR (c.name, c.redirect_uris, c.grant_types, c.auth_method, c.jwks, c.jwks_uri, c.metadata)
		IS DISTINCT FROM ($23::text, $24::text, $25::text, $26::text, $27::bytea, $28::text, $32::bytea)`

	// remembered selects the consent that the approval relies on. It is locked until the grant is
	// stored, so that a verb that forgets consents and then ends grants and codes misses none.
	remembered = `remembered AS (SELECT c.scope FROM turn, consents c
	WHERE c.user_id = $6 AND c.client_id = $5 AND c.resource = $7 AND c.scope = ANY ($20::text[])
		AND (c.place = $18 AND c.material = $19`
	orUnplaced     = ` OR c.place = ''`
	rememberedTail = `) AND NOT ` + column.IsForgotten + ` FOR KEY SHARE OF c),
ok`
	// isRemembered is the condition that every scope of it is still remembered.
	isRemembered = `))
	AND NOT EXISTS (SELECT 1 FROM unnest($20::text[]) AS r (scope) WHERE r.scope NOT IN (SELECT scope FROM remembered))
	FOR KEY SHARE OF s)`

	askedTail = `))
	FOR KEY SHARE OF s)`

	// answered lets a page be answered once: it waits for a concurrent denial, after which it
	// cannot be approved.
	answered = `,
answered AS (INSERT INTO spent (purpose, id, expires_at) SELECT '` + storage.SpentPage + `', $4::text, $%d::bigint FROM visit
	ON CONFLICT DO NOTHING RETURNING 1),
ok AS (SELECT visit.* FROM visit, answered)`

	// consented stores the consent of a user who was asked just now.
	consented = `,
consented AS (INSERT INTO consents (user_id, client_id, resource, scope, created_at, place, material)
	SELECT ok.id, $5, $7, r.scope, $2, $18, $19 FROM ok, unnest($20::text[]) AS r (scope)
	ON CONFLICT (user_id, client_id, resource, place, scope) DO UPDATE SET material = excluded.material, created_at = excluded.created_at
		WHERE consents.material <> excluded.material)`

	// takenBack forgets consents that the user was asked for again and did not grant.
	takenBack = `,
declined AS (DELETE FROM consents c USING ok WHERE c.user_id = ok.id AND c.client_id = $5 AND c.resource = $7
	AND (c.place = $18 OR c.place = '') AND c.scope = ANY ($%d::text[]))`

	// storedClient stores a client with its first grant.
	storedClient = `,
stored AS (INSERT INTO clients (` + column.ClientColumns + `)
	SELECT $21::text, $22::bytea, $23::text, $24::text, $25::text, $26::text, $27::bytea, $28::text, $29::text, $30::text, $31::text,
		$32::bytea, $33::bigint, $34::bigint FROM ok
	ON CONFLICT DO NOTHING)`

	approveTail = `,
used AS (UPDATE clients SET last_used_at = $2
	WHERE id = $5 AND deleted_at IS NULL AND (last_used_at IS NULL OR last_used_at <= $3) AND EXISTS (SELECT 1 FROM ok))
INSERT INTO grants (` + column.GrantColumns + `, code_hash, code_redirect, code_challenge, code_expires_at, sweep_at, upstream_id, given_agent, given_from, methods)
SELECT $4::text, $5::text, $6::text, $7::text, $8::text, $9::bigint, $10::bigint, $11::bigint, $12::bigint,
	$13::bytea, $14::text, $15::text, $16::bigint, $17::bigint, upstream_id, agent, address, methods FROM ok`

	unapproved = `SELECT EXISTS (SELECT 1 FROM sessions s JOIN users u ON u.id = s.user_id
	WHERE s.hash = $1 AND s.expires_at > $2 AND u.id = $3 AND NOT u.disabled AND NOT ` + column.IsSignedOut + `),
	EXISTS (SELECT 1 FROM clients WHERE id = $4 AND deleted_at IS NOT NULL),
	EXISTS (SELECT 1 FROM spent WHERE purpose = '` + storage.SpentPage + `' AND id = $5),
	EXISTS (SELECT 1 FROM pauses WHERE paused_at IS NOT NULL AND (id = $6 OR user_id = $3 AND resource = $7 AND client_id = $4))`
)

// Approve implements storage.Approvals.
func (s *Store) Approve(ctx context.Context, a storage.Approval) error {
	if a.Clearance == "" {
		return s.do(ctx, "Approve", func(ctx context.Context, q querier) error { return storeApproval(ctx, q, a) })
	}
	return s.tx(ctx, "Approve", func(ctx context.Context, q querier) error {
		if err := storeApproval(ctx, q, a); err != nil {
			return err
		}
		return rebind(ctx, q, a)
	})
}

// Approved implements storage.Approvals.
func (s *Store) Approved(ctx context.Context, a storage.Approval) (waits bool, err error) {
	err = s.do(ctx, "Approved", func(ctx context.Context, q querier) error {
		code, err := storedCode(ctx, q, "id = $1", a.Grant.ID)
		waits = err == nil && code.Waits(a)
		return err
	})
	if errors.Is(err, storage.ErrNotFound) {
		err = nil
	}
	return waits, err
}

// Deny implements storage.Approvals.
func (s *Store) Deny(ctx context.Context, grantID string, until time.Time) error {
	return s.do(ctx, "Deny", func(ctx context.Context, q querier) error {
		_, err := exec(ctx, q, spendPage, storage.SpentPage, grantID, column.Millis(until))
		var approved bool
		if err == nil { // it waited for a concurrent approval
			err = one(ctx, q, []any{&approved}, "SELECT EXISTS (SELECT 1 FROM grants WHERE id = $1)", grantID)
		}
		if err == nil && approved {
			err = storage.ErrExists
		}
		return err
	})
}

const spendPage = "INSERT INTO spent (purpose, id, expires_at) VALUES ($1,$2,$3) ON CONFLICT DO NOTHING"

func storeApproval(ctx context.Context, q querier, a storage.Approval) error {
	if a.Client != nil && a.Client.ID != a.Grant.ClientID {
		return fmt.Errorf("client %q with a grant for %q", a.Client.ID, a.Grant.ClientID)
	}
	turn, err := turnOf(ctx, q, a.Client, a.Grant)
	if err != nil {
		return err
	}
	sql, args := approval(a, turn)
	n, err := exec(ctx, q, sql, args...)
	if err == nil && n == 0 {
		err = refuseApproval(ctx, q, a, turn)
	}
	return err
}

// approval returns the statement for an approval, with its arguments.
func approval(a storage.Approval, t turn) (sql string, args []any) {
	args = append(make([]any, 0, 38), a.Session[:], column.Millis(a.Now), column.Millis(a.Now.Add(-column.UsedEvery)))
	args = append(args, column.GrantValues(a.Grant)...)
	args = append(args, a.Code.Hash[:], a.Code.RedirectURI, a.Code.Challenge, column.Millis(a.Code.ExpiresAt),
		column.Millis(a.Grant.ExpiresAt), a.Place, a.Material[:])
	page := a.Remembered == nil && !a.PageUntil.IsZero()
	head := "ok"
	switch {
	case page:
		head = "visit"
	case a.Remembered != nil && a.Unplaced:
		head = remembered + orUnplaced + rememberedTail
	case a.Remembered != nil:
		head = remembered + rememberedTail
	}
	sql = fmt.Sprintf(approveHead, head)
	if a.Client != nil && !a.Client.Fleeting() {
		sql += otherClient
	}
	if a.Remembered == nil {
		sql, args = sql+askedTail, append(args, column.Consents(a))
	} else {
		sql, args = sql+isRemembered, append(args, column.Remembered(a))
	}
	tail := approveTail
	if a.Client != nil {
		cl := *a.Client
		cl.LastUsedAt = a.Now
		tail, args = storedClient+tail, append(args, column.ClientValues(cl)...)
	}
	if a.Remembered != nil {
		return t.first(sql+tail, args, a.Now)
	}
	tail = consented + tail
	if len(a.Declined) > 0 {
		tail, args = fmt.Sprintf(takenBack, len(args)+1)+tail, append(args, []string(a.Declined))
	}
	if page {
		tail, args = fmt.Sprintf(answered, len(args)+1)+tail, append(args, column.Millis(a.PageUntil))
	}
	return t.first(sql+tail, args, a.Now)
}

// refuseApproval returns why no grant was stored.
func refuseApproval(ctx context.Context, q querier, a storage.Approval, t turn) error {
	var live, gone, done, paused bool
	err := one(ctx, q, []any{&live, &gone, &done, &paused}, unapproved, a.Session[:], column.Millis(a.Now),
		a.Grant.UserID, a.Grant.ClientID, a.Grant.ID, t.pauseID, a.Grant.Resource)
	switch {
	case err != nil:
		return err
	case !live:
		return storage.ErrNotFound
	case gone:
		return storage.ErrRevoked
	case paused:
		return storage.ErrPaused
	case done:
		return storage.ErrExists
	}
	return storage.ErrChanged
}
