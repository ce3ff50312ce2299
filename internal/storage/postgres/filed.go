package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

const (
	// fileBatch files clients that have not changed since they were read.
	fileBatch = `UPDATE clients c SET application = coalesce((SELECT counts_as FROM application_aliases a WHERE a.application = r.key), r.key)
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) AS r (id, key, name, redirects)
WHERE c.id = r.id COLLATE "C" AND c.application IS NULL AND c.name = r.name AND c.redirect_uris = r.redirects`

	putApplicationCut = "INSERT INTO application_cuts (" + column.ApplicationCutColumns + `)
VALUES ($1, $2, $3, $4, $5, (` + lastNumber + `grants_status_index_seq), ` + column.FirstGrantsPhase + ")"

	readApplicationCut = "SELECT " + column.ApplicationCutRead + " FROM application_cuts WHERE id = $1 FOR UPDATE"

	// putHold stores a hold if there is room. A block stays a block.
	putHold = `INSERT INTO application_holds AS o (application, name, blocked, held_by, at)
SELECT $1::text, $2::text, $3::bigint, $4::text, $5::bigint
WHERE EXISTS (SELECT 1 FROM application_holds WHERE application = $1) OR (SELECT count(*) FROM application_holds) < $6
ON CONFLICT (application) DO UPDATE SET blocked = excluded.blocked, held_by = excluded.held_by, at = excluded.at WHERE excluded.blocked > o.blocked`

	isBeingCut = "SELECT EXISTS (SELECT 1 FROM application_cuts WHERE application IN ($1, $2))"
)

var (
	filedAfter = column.Filed("application > $1 AND ($2 = '' OR strpos(lower(name), $2) > 0 OR strpos(lower(application), $2) > 0)",
		"h.application > $1 AND ($2 = '' OR strpos(lower(h.name), $2) > 0 OR strpos(lower(h.application), $2) > 0)", "$3")
	filedOne = column.Filed("application = $1", "h.application = $1", "1")

	// grantsOf selects live grants of an application, $1.
	grantsOf = `SELECT g.user_id FROM (SELECT $1::text COLLATE "C" AS id UNION SELECT id FROM clients WHERE application = $1) c
JOIN grants g ON g.client_id = c.id AND ` + clientKey("c.id") + `
WHERE g.revoked_at IS NULL AND g.expires_at > $2 AND NOT ` + column.IsCut + " LIMIT $3"
)

// fileClients files the unfiled clients: new ones, replaced ones, and clients of an earlier
// version. A client whose first approval is running is filed when the cut is followed, which waits
// for the approval.
func (s *Store) fileClients(ctx context.Context) error {
	for {
		n := 0
		err := s.do(ctx, "file clients", func(ctx context.Context, q querier) (err error) {
			n, err = fileSome(ctx, q)
			return err
		})
		if err != nil || n < column.FileBatch {
			return err
		}
	}
}

// filedTx is tx, which is s.tx or s.txCommitted, after filing all clients.
func (s *Store) filedTx(
	ctx context.Context, verb string,
	tx func(context.Context, string, func(context.Context, querier) error) error,
	fn func(ctx context.Context, q querier) error,
) error {
	return s.Hooks.Run(ctx, verb, func(ctx context.Context) error {
		if err := s.fileClients(ctx); err != nil {
			return err
		}
		return tx(ctx, verb, fn)
	})
}

// fileSome files up to column.FileBatch clients, and returns how many it has found.
func fileSome(ctx context.Context, q querier) (int, error) {
	var ids, keys, names, redirects []string
	rows, err := each(ctx, q, scanFiled, column.Unfiled+"$1", column.FileBatch)
	for _, r := range rows {
		ids, keys = append(ids, r.ID), append(keys, r.Application())
		names, redirects = append(names, r.Name), append(redirects, r.redirects)
	}
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	_, err = exec(ctx, q, fileBatch, ids, keys, names, redirects)
	return len(rows), err
}

// unfiled is a client with its redirect URIs as they are stored.
type unfiled struct {
	storage.Client
	redirects string
}

func scanFiled(row pgx.CollectableRow) (u unfiled, err error) {
	var r column.ApplicationRow
	if err := row.Scan(r.Dest()...); err != nil {
		return u, err
	}
	u.redirects = r.Redirects()
	u.Client, err = r.Client()
	return u, err
}

// FiledApplications implements storage.Applications.
func (s *Store) FiledApplications(
	ctx context.Context, q storage.Search,
) (out []storage.FiledApplication, err error) {
	err = s.Hooks.Run(ctx, "FiledApplications", func(ctx context.Context) (err error) {
		out, err = s.filed(ctx, filedAfter, q.After, storage.Fold(q.Text), q.Limit)
		return err
	})
	return out, err
}

// FiledApplication implements storage.Applications.
func (s *Store) FiledApplication(ctx context.Context, key string) (out storage.FiledApplication, err error) {
	err = s.Hooks.Run(ctx, "FiledApplication", func(ctx context.Context) error {
		err := s.do(ctx, "application of a key", func(ctx context.Context, q querier) error {
			err := one(ctx, q, []any{&key}, "SELECT counts_as FROM application_aliases WHERE application = $1", key)
			if errors.Is(err, pgx.ErrNoRows) {
				return nil
			}
			return err
		})
		if err != nil {
			return err
		}
		found, err := s.filed(ctx, filedOne, key)
		if err == nil && len(found) == 0 {
			err = storage.ErrNotFound
		}
		if err == nil {
			out = found[0]
		}
		return err
	})
	return out, err
}

func (s *Store) filed(ctx context.Context, query string, args ...any) (out []storage.FiledApplication, err error) {
	if err := s.fileClients(ctx); err != nil {
		return nil, err
	}
	err = s.do(ctx, "applications", func(ctx context.Context, q querier) (err error) {
		out, err = each(ctx, q, func(row pgx.CollectableRow) (storage.FiledApplication, error) {
			var r column.FiledRow
			if err := row.Scan(r.Dest()...); err != nil {
				return storage.FiledApplication{}, err
			}
			return r.Application()
		}, query, args...)
		if err != nil {
			return err
		}
		for i := range out {
			if err := describe(ctx, q, &out[i]); err != nil {
				return err
			}
		}
		return nil
	})
	return out, err
}

// describe adds the hold of an application and its merged keys.
func describe(ctx context.Context, q querier, a *storage.FiledApplication) (err error) {
	var r column.HoldRow
	err = one(ctx, q, r.Dest(), "SELECT "+column.HoldRead+" FROM application_holds h WHERE application = $1", a.Key)
	switch {
	case err == nil:
		h := r.Hold()
		a.Hold = &h
	case !errors.Is(err, pgx.ErrNoRows):
		return err
	}
	a.Merged, err = each(ctx, q, pgx.RowTo[string],
		"SELECT application FROM application_aliases WHERE counts_as = $1 ORDER BY application", a.Key)
	return err
}

// ApplicationGrants implements storage.Applications.
func (s *Store) ApplicationGrants(
	ctx context.Context, key string, now time.Time, limit int,
) (n storage.ApplicationCount, err error) {
	err = s.do(ctx, "ApplicationGrants", func(ctx context.Context, q querier) error {
		return one(ctx, q, []any{&n.Grants, &n.People},
			"SELECT count(*), count(DISTINCT nullif(user_id, '')) FROM ("+grantsOf+") x", key, column.Millis(now), limit)
	})
	return n, err
}

// HoldApplication implements storage.Applications.
func (s *Store) HoldApplication(ctx context.Context, h storage.Hold) error {
	return s.filedTx(ctx, "HoldApplication", s.tx, func(ctx context.Context, q querier) error {
		_, err := exec(ctx, q, putHold, append(column.HoldValues(h), storage.MaxHolds)...)
		if err != nil {
			return err
		}
		var held bool
		err = one(ctx, q, []any{&held}, "SELECT EXISTS (SELECT 1 FROM application_holds WHERE application = $1)",
			h.Application)
		switch {
		case err != nil:
			return err
		case !held:
			return storage.ErrFull
		case !h.Blocked:
			return nil
		}
		return cutApplication(ctx, q, newApplicationCut(h.Application, storage.ByOperator, h.At), h.At)
	})
}

// newApplicationCut returns the cut of the grants to the clients of an application.
func newApplicationCut(key string, by storage.RevokedBy, now time.Time) column.CutRow {
	return column.NewCut(secrets.ID("cut_"), storage.Selection{Application: key}, by, now)
}

// cutApplication also makes the store refuse assertions issued before the cut. Self-registered
// clients have no assertions.
func cutApplication(ctx context.Context, q querier, row column.CutRow, now time.Time) error {
	ids, err := each(ctx, q, pgx.RowTo[string], "SELECT id FROM clients WHERE application = $1 AND source NOT IN "+
		column.SelfRegisteredSources+" UNION SELECT $1::text", row.Cut().Application)
	if err != nil {
		return err
	}
	var steps []statement
	for _, id := range ids {
		steps = append(steps, noteCut(storage.Selection{ClientID: id}, now)...)
	}
	return all(ctx, q, append(steps, statement{putApplicationCut, row.Values(0)})...)
}

// DeleteApplication implements storage.Applications.
func (s *Store) DeleteApplication(ctx context.Context, key string, now time.Time) error {
	return s.filedTx(ctx, "DeleteApplication", s.tx, func(ctx context.Context, q querier) error {
		err := all(ctx, q, statement{"UPDATE clients SET " + column.Bury + "$2 WHERE application = $1 AND deleted_at IS NULL",
			[]any{key, column.Millis(now)}})
		if err != nil {
			return err
		}
		return cutApplication(ctx, q, newApplicationCut(key, storage.ByClientDeleted, now), now)
	})
}

// MergeApplications implements storage.Applications.
func (s *Store) MergeApplications(ctx context.Context, key, into string, now time.Time) error {
	return s.filedTx(ctx, "MergeApplications", s.txCommitted, func(ctx context.Context, q querier) error {
		if err := beginMerge(ctx, q); err != nil {
			return err
		}
		var merged, cut bool
		var held int
		err := one(ctx, q, []any{&merged, &held}, `SELECT EXISTS (SELECT 1 FROM application_aliases WHERE application IN ($1, $2)),
			(SELECT count(*) + count(DISTINCT blocked) FROM application_holds WHERE application IN ($1, $2))`, key, into)
		if err == nil {
			err = one(ctx, q, []any{&cut}, isBeingCut, key, into)
		}
		switch {
		case err != nil:
			return err
		case merged:
			return storage.ErrExists
		case held != 0 && held != 3: // two of one kind give 3
			return storage.ErrMismatch
		case cut:
			return storage.ErrBusy
		}
		if err := unitePauses(ctx, q, key, into, now); err != nil {
			return err
		}
		return all(ctx, q,
			statement{"DELETE FROM application_holds WHERE application = $1", []any{key}},
			statement{"UPDATE application_aliases SET counts_as = $2 WHERE counts_as = $1", []any{key, into}},
			statement{"INSERT INTO application_aliases (application, counts_as, at) VALUES ($1, $2, $3)",
				[]any{key, into, column.Millis(now)}},
			statement{"UPDATE clients SET application = $2 WHERE application = $1", []any{key, into}},
		)
	})
}

// SplitApplication implements storage.Applications.
func (s *Store) SplitApplication(ctx context.Context, key string, now time.Time) error {
	return s.tx(ctx, "SplitApplication", func(ctx context.Context, q querier) error {
		var of string
		var cut bool
		err := one(ctx, q, []any{&of}, "SELECT counts_as FROM application_aliases WHERE application = $1", key)
		if err == nil {
			err = one(ctx, q, []any{&cut}, isBeingCut, key, of)
		}
		switch {
		case err != nil:
			return err
		case cut:
			return storage.ErrBusy
		}
		err = all(ctx, q,
			statement{"DELETE FROM application_aliases WHERE application = $1", []any{key}},
			statement{`INSERT INTO application_holds (application, name, blocked, held_by, at)
				SELECT $1::text, name, blocked, held_by, at FROM application_holds WHERE application = $2 ON CONFLICT DO NOTHING`,
				[]any{key, of}},
			statement{"UPDATE clients SET application = NULL WHERE application = $1 AND deleted_at IS NULL", []any{of}},
		)
		for n := column.FileBatch; err == nil && n == column.FileBatch; { // what is held stays held
			n, err = fileSome(ctx, q)
		}
		return err
	})
}
