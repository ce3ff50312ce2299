package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/portable"
)

// sweeps remove records that no longer matter; $1 is now and $2 the limit.
//
// Grants are removed in the order of their end. First go the tokens of the grants that ended
// longest ago, and then those grants if they have no tokens left. Both statements read only the
// first grants. A search for any grant without tokens would read the whole backlog each time.
// Grants usually have several tokens, so the limit on grants is a quarter.
//
// Only removed rows are locked, because a lock is a write. Rows that another replica sweeps, or
// that a verb has locked, are skipped.
var sweeps = [...]string{
	"DELETE FROM sessions WHERE hash IN (SELECT hash FROM sessions WHERE expires_at <= $1 LIMIT $2 FOR UPDATE SKIP LOCKED)",
	`DELETE FROM refresh_tokens WHERE hash IN (SELECT t.hash FROM
		(SELECT id, sweep_at FROM grants WHERE sweep_at <= $1 ORDER BY sweep_at LIMIT $2 / 4 + 1) g
		JOIN refresh_tokens t ON t.grant_id = g.id ORDER BY g.sweep_at LIMIT $2 FOR UPDATE OF t SKIP LOCKED)`,
	`WITH gone AS (DELETE FROM grants WHERE id IN (SELECT id FROM grants WHERE sweep_at <= $1 AND id = ANY (ARRAY(SELECT g.id FROM
		(SELECT id FROM grants WHERE sweep_at <= $1 ORDER BY sweep_at LIMIT $2) g
		WHERE NOT EXISTS (SELECT 1 FROM refresh_tokens t WHERE t.grant_id = g.id))) FOR UPDATE SKIP LOCKED)
		RETURNING id, client_id, for_program),
	calls AS (DELETE FROM last_calls WHERE grant_id IN (SELECT id FROM gone)),
	keys AS (DELETE FROM clients WHERE ` + column.GoneKeys + ` AND id IN (SELECT client_id FROM gone WHERE for_program))
	SELECT 1 FROM gone`,
	"DELETE FROM denied_tokens WHERE id IN (SELECT id FROM denied_tokens WHERE expires_at <= $1 LIMIT $2 FOR UPDATE SKIP LOCKED)",
	"DELETE FROM spent WHERE (purpose, id) IN (SELECT purpose, id FROM spent WHERE expires_at <= $1 LIMIT $2 FOR UPDATE SKIP LOCKED)",
	"DELETE FROM failures WHERE key IN (SELECT key FROM failures WHERE expires_at <= $1 LIMIT $2 FOR UPDATE SKIP LOCKED)",
	"DELETE FROM signing_keys WHERE id IN (SELECT id FROM signing_keys WHERE expires_at <= $1 LIMIT $2 FOR UPDATE SKIP LOCKED)",
	"DELETE FROM departures WHERE key IN (SELECT key FROM departures WHERE expires_at <= $1::bigint" +
		column.Before(column.AbandonedFor) + " LIMIT $2 FOR UPDATE SKIP LOCKED)",
	"DELETE FROM farewells WHERE hash IN (SELECT hash FROM farewells WHERE expires_at <= $1 LIMIT $2 FOR UPDATE SKIP LOCKED)",
	"DELETE FROM events WHERE id IN (SELECT id FROM events WHERE at <= $1::bigint" + column.Before(column.EventsFor) +
		" LIMIT $2 FOR UPDATE SKIP LOCKED)",
	"DELETE FROM upstreams WHERE id IN (SELECT id FROM upstreams WHERE ended_at <= $1::bigint" +
		column.Before(column.EndedFor) + " LIMIT $2 FOR UPDATE SKIP LOCKED)",
	"DELETE FROM handbacks WHERE id IN (SELECT id FROM handbacks WHERE expires_at <= $1 LIMIT $2 FOR UPDATE SKIP LOCKED)",
	"DELETE FROM proposals WHERE id IN (SELECT id FROM proposals WHERE expires_at <= $1 LIMIT $2 FOR UPDATE SKIP LOCKED)",
	"DELETE FROM pauses WHERE id IN (SELECT id FROM pauses WHERE paused_at IS NULL AND expires_at <= $1 LIMIT $2 FOR UPDATE SKIP LOCKED)",
	"DELETE FROM replicas WHERE id IN (SELECT id FROM replicas WHERE seen_at <= $1::bigint" +
		column.Before(storage.ReplicaFor) + " LIMIT $2 FOR UPDATE SKIP LOCKED)",
	"DELETE FROM replicas WHERE $1::bigint > 0 AND id IN (" + column.SurplusReplicas + " LIMIT $2" + column.KeptReplicas + ")",
	"DELETE FROM one_time_links WHERE hash IN (SELECT hash FROM one_time_links WHERE expires_at <= $1 LIMIT $2 FOR UPDATE SKIP LOCKED)",
	"DELETE FROM notices WHERE id IN (SELECT id FROM notices WHERE seen_at <= $1::bigint" +
		column.Before(column.SeenFor) + " LIMIT $2 FOR UPDATE SKIP LOCKED)",
	"DELETE FROM notices WHERE id IN (SELECT id FROM notices WHERE at <= $1::bigint" +
		column.Before(column.UnseenFor) + " LIMIT $2 FOR UPDATE SKIP LOCKED)",
	"DELETE FROM devices WHERE code_hash IN (SELECT code_hash FROM devices WHERE expires_at <= $1::bigint" +
		column.Before(column.DecidedFor) + " LIMIT $2 FOR UPDATE SKIP LOCKED)",
	"DELETE FROM remote_sign_ins WHERE secret_hash IN (SELECT secret_hash FROM remote_sign_ins WHERE expires_at <= $1 LIMIT $2 FOR UPDATE SKIP LOCKED)",
	"DELETE FROM pushed_requests WHERE reference_hash IN (SELECT reference_hash FROM pushed_requests WHERE expires_at <= $1 LIMIT $2 FOR UPDATE SKIP LOCKED)",
	"DELETE FROM clearances WHERE binding IN (SELECT binding FROM clearances WHERE expires_at <= $1 LIMIT $2 FOR UPDATE SKIP LOCKED)",
	"DELETE FROM keyed_requests WHERE key_hash IN (SELECT key_hash FROM keyed_requests WHERE expires_at <= $1 LIMIT $2 FOR UPDATE SKIP LOCKED)",
	"DELETE FROM tasks WHERE id IN (SELECT id FROM tasks WHERE expires_at <= $1 LIMIT $2 FOR UPDATE SKIP LOCKED)",
	"DELETE FROM last_calls WHERE grant_id IN (SELECT grant_id FROM last_calls WHERE kept_until <= $1 LIMIT $2 FOR UPDATE SKIP LOCKED)",
	"DELETE FROM asserted_ends WHERE (issuer, subject) IN (SELECT issuer, subject FROM asserted_ends WHERE expires_at <= $1 LIMIT $2 FOR UPDATE SKIP LOCKED)",
	"DELETE FROM allowances WHERE key IN (SELECT key FROM allowances WHERE full_at <= $1 LIMIT $2 FOR UPDATE SKIP LOCKED)",
	"DELETE FROM nodes WHERE seq IN (SELECT seq FROM nodes WHERE expires_at <= $1 LIMIT $2 FOR UPDATE SKIP LOCKED)",
	"DELETE FROM audit_writers WHERE id IN (SELECT id FROM audit_writers WHERE at <= $1::bigint" +
		column.Before(column.AuditWriterFor) + " LIMIT $2 FOR UPDATE SKIP LOCKED)",
	"DELETE FROM outbox WHERE seq IN (SELECT seq FROM outbox WHERE at <= $1::bigint" +
		column.Before(storage.DeliveryFor) + " LIMIT $2 FOR UPDATE SKIP LOCKED)",
	"DELETE FROM attempt_steps WHERE seq IN (SELECT seq FROM attempt_steps WHERE kept_until <= $1 LIMIT $2 FOR UPDATE SKIP LOCKED)",
	"DELETE FROM attempt_steps WHERE seq IN (" + column.SurplusSteps + " AND $1::bigint > 0 LIMIT $2)",
}

// The unused clients without a grant, with their consents. $1 is the time until which they were
// unused. Clients created by an administrator stay.
const (
	forgetUnused = forgetHead + "last_used_at IS NULL AND created_at <= $1 ORDER BY created_at" + forgetTail
	forgetIdle   = forgetHead + "last_used_at <= $1 ORDER BY last_used_at" + forgetTail

	forgetHead = `WITH idle AS (SELECT id FROM clients c WHERE deleted_at IS NULL AND source IN ` + column.ForgottenSources + `
	AND NOT EXISTS (SELECT 1 FROM grants g WHERE g.client_id = c.id AND hashtext(g.client_id) = hashtext(c.id)) AND `
	forgetTail = ` LIMIT $2 FOR UPDATE SKIP LOCKED),
forgotten AS (DELETE FROM consents WHERE client_id IN (SELECT id FROM idle))
DELETE FROM clients WHERE id IN (SELECT id FROM idle)`
)

// buryAbandoned ends the clients that replaced their registration and were never approved.
const buryAbandoned = "UPDATE clients SET " + column.Bury + "$1 WHERE id IN (SELECT id FROM clients c WHERE " + column.Abandoned + `$1
	AND NOT EXISTS (SELECT 1 FROM grants g WHERE g.client_id = c.id AND hashtext(g.client_id) = hashtext(c.id)) LIMIT $2 FOR UPDATE SKIP LOCKED)`

const eraseSealed = `UPDATE refresh_tokens SET sealed = NULL WHERE hash IN (SELECT hash FROM refresh_tokens
	WHERE sealed IS NOT NULL AND rotated_at <= $1 LIMIT $2 FOR UPDATE SKIP LOCKED)`

// Sweep implements storage.Housekeeping. Each kind has its own transaction.
func (s *Store) Sweep(ctx context.Context, r storage.Retention, limit int) (total int, err error) {
	err = s.Hooks.Run(ctx, "Sweep", func(ctx context.Context) (err error) {
		total = 0
		one := func(before time.Time, query string, more ...any) {
			if err != nil || before.IsZero() {
				return
			}
			err = s.do(ctx, "sweep", func(ctx context.Context, q querier) error {
				n, err := exec(ctx, q, query, append([]any{column.Millis(before), max(limit, 0)}, more...)...)
				total += int(n)
				return err
			})
		}
		for _, query := range sweeps {
			one(r.Now, query)
		}
		if err == nil && !r.Now.IsZero() {
			var n int
			n, err = sweepOverflow(ctx, s, column.Millis(r.Now), max(limit, 0))
			total += n
		}
		if err == nil {
			var n int
			n, err = walk(ctx, s, r.Now, max(limit, 0))
			total += n
		}
		one(r.Now, sweepOrphans, column.OrphanedFor.Milliseconds(), column.HandedBackFor.Milliseconds())
		one(r.Rotated, eraseSealed)
		one(r.ClientUnused, forgetUnused)
		one(r.ClientUnused, buryAbandoned)
		one(r.ClientIdle, forgetIdle)
		return err
	})
	return total, err
}

// sweepOverflow removes the oldest deliveries of receivers with too many, and stores events about
// it.
func sweepOverflow(ctx context.Context, s *Store, now int64, limit int) (n int, err error) {
	err = s.tx(ctx, "sweep", func(ctx context.Context, q querier) error {
		lost, err := each(ctx, q, pgx.RowTo[string],
			"DELETE FROM outbox WHERE seq IN ("+column.Overflowing+" LIMIT $1) RETURNING receiver", limit)
		if n = len(lost); err != nil || n == 0 {
			return err
		}
		for _, e := range column.DroppedEvents(lost, now) {
			e.ID = secrets.ID("evt_")
			if err := portable.PutEvent(portableConn{ctx, q}, e); err != nil {
				return err
			}
		}
		return nil
	})
	return n, err
}

// Fingerprint implements storage.Housekeeping.
func (s *Store) Fingerprint(ctx context.Context, fp []byte) (out []byte, err error) {
	err = s.do(ctx, "Fingerprint", func(ctx context.Context, q querier) error {
		if len(fp) > 0 {
			if _, err := q.Exec(ctx,
				"INSERT INTO settings (name, value) VALUES ('fingerprint', $1) ON CONFLICT DO NOTHING",
				fp); err != nil {
				return err
			}
		}
		err := one(ctx, q, []any{&out}, "SELECT value FROM settings WHERE name = 'fingerprint'")
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	})
	return out, err
}

// remember also returns the previous value, because a statement sees the rows from its start.
const remember = `WITH old AS (SELECT value FROM settings WHERE name = $1),
now AS (INSERT INTO settings (name, value) SELECT $1, $2::bytea WHERE $2::bytea IS NOT NULL ON CONFLICT (name) DO UPDATE SET value = excluded.value)
SELECT (SELECT value FROM old)`

// Remember implements storage.Housekeeping.
func (s *Store) Remember(ctx context.Context, name string, value []byte) (before []byte, err error) {
	err = s.do(ctx, "Remember", func(ctx context.Context, q querier) error {
		return one(ctx, q, []any{&before}, remember, "fact:"+name, value)
	})
	return before, err
}
