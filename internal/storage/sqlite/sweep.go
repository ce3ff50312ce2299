package sqlite

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/portable"
)

// sweeps remove records that no longer matter; ?1 is now and ?2 the limit.
//
// Grants are removed in the order of their end. First go the tokens of the grants that ended
// longest ago, and then, in sweepGrants, those grants if they have no tokens left. Both statements
// read only the first grants. A search for any grant without tokens would read the whole backlog
// each time. Grants usually have several tokens, so the limit on grants is a quarter.
var sweeps = [...]string{
	"DELETE FROM sessions WHERE hash IN (SELECT hash FROM sessions WHERE expires_at <= ?1 LIMIT ?2)",
	`DELETE FROM refresh_tokens WHERE hash IN (SELECT t.hash FROM
		(SELECT id, sweep_at FROM grants WHERE sweep_at <= ?1 ORDER BY sweep_at LIMIT ?2 / 4 + 1) g
		JOIN refresh_tokens t ON t.grant_id = g.id ORDER BY g.sweep_at LIMIT ?2)`,
	"DELETE FROM denied_tokens WHERE id IN (SELECT id FROM denied_tokens WHERE expires_at <= ?1 LIMIT ?2)",
	"DELETE FROM spent WHERE (purpose, id) IN (SELECT purpose, id FROM spent WHERE expires_at <= ?1 LIMIT ?2)",
	"DELETE FROM failures WHERE key IN (SELECT key FROM failures WHERE expires_at <= ?1 LIMIT ?2)",
	"DELETE FROM signing_keys WHERE id IN (SELECT id FROM signing_keys WHERE expires_at <= ?1 LIMIT ?2)",
	"DELETE FROM departures WHERE key IN (SELECT key FROM departures WHERE expires_at <= ?1" +
		column.Before(column.AbandonedFor) + " LIMIT ?2)",
	"DELETE FROM farewells WHERE hash IN (SELECT hash FROM farewells WHERE expires_at <= ?1 LIMIT ?2)",
	"DELETE FROM events WHERE id IN (SELECT id FROM events WHERE at <= ?1" + column.Before(column.EventsFor) +
		" LIMIT ?2)",
	"DELETE FROM upstreams WHERE id IN (SELECT id FROM upstreams WHERE ended_at <= ?1" +
		column.Before(column.EndedFor) + " LIMIT ?2)",
	"DELETE FROM handbacks WHERE id IN (SELECT id FROM handbacks WHERE expires_at <= ?1 LIMIT ?2)",
	"DELETE FROM proposals WHERE id IN (SELECT id FROM proposals WHERE expires_at <= ?1 LIMIT ?2)",
	"DELETE FROM pauses WHERE id IN (SELECT id FROM pauses WHERE paused_at IS NULL AND expires_at <= ?1 LIMIT ?2)",
	"DELETE FROM replicas WHERE id IN (SELECT id FROM replicas WHERE seen_at <= ?1" +
		column.Before(storage.ReplicaFor) + " LIMIT ?2)",
	"DELETE FROM replicas WHERE ?1 > 0 AND id IN (" + column.SurplusReplicas + " LIMIT ?2" + column.KeptReplicas + ")",
	"DELETE FROM one_time_links WHERE hash IN (SELECT hash FROM one_time_links WHERE expires_at <= ?1 LIMIT ?2)",
	"DELETE FROM notices WHERE id IN (SELECT id FROM notices WHERE seen_at <= ?1" + column.Before(column.SeenFor) +
		" LIMIT ?2)",
	"DELETE FROM notices WHERE id IN (SELECT id FROM notices WHERE at <= ?1" + column.Before(column.UnseenFor) +
		" LIMIT ?2)",
	"DELETE FROM devices WHERE code_hash IN (SELECT code_hash FROM devices WHERE expires_at <= ?1" +
		column.Before(column.DecidedFor) + " LIMIT ?2)",
	"DELETE FROM remote_sign_ins WHERE secret_hash IN (SELECT secret_hash FROM remote_sign_ins WHERE expires_at <= ?1 LIMIT ?2)",
	"DELETE FROM pushed_requests WHERE reference_hash IN (SELECT reference_hash FROM pushed_requests WHERE expires_at <= ?1 LIMIT ?2)",
	"DELETE FROM clearances WHERE binding IN (SELECT binding FROM clearances WHERE expires_at <= ?1 LIMIT ?2)",
	"DELETE FROM keyed_requests WHERE key_hash IN (SELECT key_hash FROM keyed_requests WHERE expires_at <= ?1 LIMIT ?2)",
	"DELETE FROM tasks WHERE id IN (SELECT id FROM tasks WHERE expires_at <= ?1 LIMIT ?2)",
	"DELETE FROM last_calls WHERE grant_id IN (SELECT grant_id FROM last_calls WHERE kept_until <= ?1 LIMIT ?2)",
	"DELETE FROM asserted_ends WHERE (issuer, subject) IN (SELECT issuer, subject FROM asserted_ends WHERE expires_at <= ?1 LIMIT ?2)",
	"DELETE FROM allowances WHERE key IN (SELECT key FROM allowances WHERE full_at <= ?1 LIMIT ?2)",
	"DELETE FROM nodes WHERE seq IN (SELECT seq FROM nodes WHERE expires_at <= ?1 LIMIT ?2)",
	"DELETE FROM audit_writers WHERE id IN (SELECT id FROM audit_writers WHERE at <= ?1" +
		column.Before(column.AuditWriterFor) + " LIMIT ?2)",
	"DELETE FROM outbox WHERE seq IN (SELECT seq FROM outbox WHERE at <= ?1" + column.Before(storage.DeliveryFor) +
		" LIMIT ?2)",
	"DELETE FROM attempt_steps WHERE seq IN (SELECT seq FROM attempt_steps WHERE kept_until <= ?1 LIMIT ?2)",
	"DELETE FROM attempt_steps WHERE seq IN (" + column.SurplusSteps + " AND ?1 > 0 LIMIT ?2)",
}

const endedGrants = `DELETE FROM grants WHERE id IN (SELECT g.id FROM
	(SELECT id FROM grants WHERE sweep_at <= ?1 ORDER BY sweep_at LIMIT ?2) g
	WHERE NOT EXISTS (SELECT 1 FROM refresh_tokens t WHERE t.grant_id = g.id))
RETURNING id, CASE WHEN for_program THEN client_id ELSE '' END`

// sweepGrants removes grants with their last calls, and the clients of program keys.
func sweepGrants(c *conn, before int64, limit int) (int64, error) {
	type grant struct{ id, key string }
	gone, err := each(c, func(row scanner) (g grant, err error) {
		err = row.Scan(&g.id, &g.key)
		return g, err
	}, endedGrants, before, limit)
	if err != nil || len(gone) == 0 {
		return 0, err
	}
	var ids, keys []string
	for _, g := range gone {
		ids = append(ids, g.id)
		if g.key != "" {
			keys = append(keys, g.key)
		}
	}
	err = all(
		run(c, "DELETE FROM last_calls WHERE grant_id IN (SELECT value FROM json_each(?))", column.List(ids)),
		run(c, "DELETE FROM clients WHERE "+column.GoneKeys+" AND id IN (SELECT value FROM json_each(?))",
			column.List(keys)),
	)
	return int64(len(gone)), err
}

// sweepOverflow removes the oldest deliveries of receivers with too many, and stores events about
// it.
func sweepOverflow(c *conn, now int64, limit int) (int64, error) {
	receiver := func(row scanner) (r string, err error) {
		err = row.Scan(&r)
		return r, err
	}
	lost, err := each(c, receiver,
		"DELETE FROM outbox WHERE seq IN ("+column.Overflowing+" LIMIT ?1) RETURNING receiver", limit)
	if err != nil {
		return 0, err
	}
	for _, e := range column.DroppedEvents(lost, now) {
		e.ID = secrets.ID("evt_")
		if err := portable.PutEvent(portableConn{c}, e); err != nil {
			return 0, err
		}
	}
	return int64(len(lost)), nil
}

// sweeper removes up to limit records of one kind that no longer matter.
type sweeper func(c *conn, before int64, limit int) (int64, error)

func statement(query string) sweeper {
	return func(c *conn, before int64, limit int) (int64, error) { return c.exec(query, before, limit) }
}

// The unused clients without a grant, with their consents. Clients created by an administrator
// stay.
var (
	forgetUnused = forget("last_used_at IS NULL AND created_at <= ?1", "created_at")
	forgetIdle   = forget("last_used_at <= ?1", "last_used_at")
)

func forget(where, order string) sweeper {
	idle := `SELECT id FROM clients c WHERE ` + where + ` AND deleted_at IS NULL AND source IN ` + column.ForgottenSources + `
		AND NOT EXISTS (SELECT 1 FROM grants g WHERE g.client_id = c.id AND ` + clientKey("c.id") + `) ORDER BY ` + order + `, id LIMIT ?2`
	return func(c *conn, before int64, limit int) (int64, error) {
		if _, err := c.exec("DELETE FROM consents WHERE client_id IN ("+idle+")", before, limit); err != nil {
			return 0, err
		}
		return c.exec("DELETE FROM clients WHERE id IN ("+idle+")", before, limit)
	}
}

// buryAbandoned ends the clients that replaced their registration and were never approved.
var buryAbandoned = "UPDATE clients SET " + column.Bury + "?1 WHERE id IN (SELECT id FROM clients c WHERE " + column.Abandoned + `?1
	AND NOT EXISTS (SELECT 1 FROM grants g WHERE g.client_id = c.id AND ` + clientKey("c.id") + `) LIMIT ?2)`

const eraseSealed = `UPDATE refresh_tokens SET sealed = NULL WHERE hash IN (
	SELECT hash FROM refresh_tokens WHERE sealed IS NOT NULL AND rotated_at <= ?1 LIMIT ?2)`

// sweepRows bounds the rows of one kind that one transaction removes. While it runs, sign-ins wait.
const sweepRows = 200

// Sweep implements storage.Housekeeping. Each kind has its own short transactions, so that other verbs
// can run in between. A pass that finds few records has reached the end of the backlog.
func (s *Store) Sweep(ctx context.Context, r storage.Retention, limit int) (total int, err error) {
	err = s.Hooks.Run(ctx, "Sweep", func(ctx context.Context) (err error) {
		rows := min(max(limit, 0), sweepRows)
		total = 0
		for n := rows; err == nil && total < limit && n > rows/8; total += n {
			n, err = s.sweepOnce(ctx, r, rows)
		}
		if err == nil && !r.Now.IsZero() {
			var n int
			n, err = walk(ctx, s, r.Now, max(limit, 0))
			total += n
		}
		return err
	})
	return total, err
}

// sweepOnce removes up to limit records of each kind.
func (s *Store) sweepOnce(ctx context.Context, r storage.Retention, limit int) (total int, err error) {
	one := func(before time.Time, sweep sweeper) {
		if err != nil || before.IsZero() {
			return
		}
		var n int64
		err = s.write(ctx, "sweep", func(c *conn) (err error) {
			n, err = sweep(c, column.Millis(before), limit)
			return err
		})
		total += int(n)
	}
	for _, query := range sweeps {
		one(r.Now, statement(query))
	}
	one(r.Now, sweepOverflow)
	one(r.Now, sweepGrants)
	one(r.Now, orphans)
	one(r.Rotated, statement(eraseSealed))
	one(r.ClientUnused, forgetUnused)
	one(r.ClientUnused, statement(buryAbandoned))
	one(r.ClientIdle, forgetIdle)
	return total, err
}

// Fingerprint implements storage.Housekeeping.
func (s *Store) Fingerprint(ctx context.Context, fp []byte) (out []byte, err error) {
	err = s.write(ctx, "Fingerprint", func(c *conn) error {
		if len(fp) > 0 {
			if _, err := c.exec("INSERT INTO settings (name, value) VALUES ('fingerprint', ?) ON CONFLICT DO NOTHING",
				fp); err != nil {
				return err
			}
		}
		return ignore(c.one([]any{&out}, "SELECT value FROM settings WHERE name = 'fingerprint'"), storage.ErrNotFound)
	})
	return out, err
}

// signInBytes is the size of a sign-in's writes. On a full disk, a smaller write could still fit
// into a page.
const signInBytes = 16 << 10

// Writable implements storage.Housekeeping. SQLite does not write unchanged pages, so the value
// differs each time.
func (s *Store) Writable(ctx context.Context) error {
	value := make([]byte, signInBytes)
	rand.Read(value) // never fails
	return s.write(ctx, "Writable", func(c *conn) error {
		_, err := remember(c, "probe", value)
		return err
	})
}

// Remember implements storage.Housekeeping.
func (s *Store) Remember(ctx context.Context, name string, value []byte) (before []byte, err error) {
	err = s.write(ctx, "Remember", func(c *conn) (err error) {
		before, err = remember(c, name, value)
		return err
	})
	return before, err
}

func remember(c *conn, name string, value []byte) (before []byte, err error) {
	err = ignore(c.one([]any{&before}, "SELECT value FROM settings WHERE name = ?", "fact:"+name), storage.ErrNotFound)
	if err != nil || value == nil {
		return before, err
	}
	_, err = c.exec(
		"INSERT INTO settings (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
		"fact:"+name, value,
	)
	return before, err
}
