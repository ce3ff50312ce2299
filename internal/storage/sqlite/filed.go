package sqlite

import (
	"context"
	"errors"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

const (
	fileClient = `UPDATE clients SET application = coalesce((SELECT counts_as FROM application_aliases WHERE application = ?2), ?2)
WHERE id = ?1 AND application IS NULL`

	putApplicationCut = "INSERT INTO application_cuts (" + column.ApplicationCutColumns + `)
SELECT ?1, ?2, ?3, ?4, ?5, coalesce(max(status_index), 0), ` + column.FirstGrantsPhase + " FROM grants"

	// putHold stores a hold if there is room. A block stays a block.
	putHold = `INSERT INTO application_holds (application, name, blocked, held_by, at) SELECT ?1, ?2, ?3, ?4, ?5
WHERE EXISTS (SELECT 1 FROM application_holds WHERE application = ?1) OR (SELECT count(*) FROM application_holds) < ?6
ON CONFLICT (application) DO UPDATE SET blocked = excluded.blocked, held_by = excluded.held_by, at = excluded.at WHERE excluded.blocked > blocked`

	// grantsOf selects live grants of an application, ?1.
	grantsOf = `SELECT g.user_id AS user_id FROM (SELECT ?1 AS id UNION SELECT id FROM clients WHERE application = ?1) c
JOIN grants g ON g.client_id = c.id AND substr(g.client_id, 9, 4) || substr(g.client_id, -8) = substr(c.id, 9, 4) || substr(c.id, -8)
WHERE g.revoked_at IS NULL AND g.expires_at > ?2 AND NOT ` + column.IsCut + " LIMIT ?3"

	isBeingCut = "SELECT EXISTS (SELECT 1 FROM application_cuts WHERE application IN (?, ?))"
)

var (
	filedAfter = column.Filed("application > ?1 AND (?2 = '' OR instr(lower(name), ?2) OR instr(lower(application), ?2))",
		"h.application > ?1 AND (?2 = '' OR instr(lower(h.name), ?2) OR instr(lower(h.application), ?2))", "?3")
	filedOne = column.Filed("application = ?1", "h.application = ?1", "1")
)

// fileClients files the unfiled clients: new ones, replaced ones, and clients of an earlier
// version. A verb that decides by application repeats it in its transaction, for clients added
// since.
func (s *Store) fileClients(ctx context.Context) error {
	for {
		var some bool
		err := s.read(ctx, "unfiled clients", func(c *conn) error {
			return c.one([]any{&some}, "SELECT EXISTS ("+column.Unfiled+"1)")
		})
		if err != nil || !some {
			return err
		}
		if err := s.write(ctx, "file clients", func(c *conn) error { return file(c, column.FileBatch) }); err != nil {
			return err
		}
	}
}

// file files up to limit clients; -1: all.
func file(c *conn, limit int) error {
	unfiled, err := each(c, scanKnown, column.Unfiled+"?", limit)
	if err != nil {
		return err
	}
	for _, cl := range unfiled {
		if err := run(c, fileClient, cl.ID, cl.Application())(); err != nil {
			return err
		}
	}
	return nil
}

// writeFiled is write after filing all clients.
func (s *Store) writeFiled(ctx context.Context, verb string, do func(c *conn) error) error {
	return s.Hooks.Run(ctx, verb, func(ctx context.Context) error {
		if err := s.fileClients(ctx); err != nil {
			return err
		}
		return s.write(ctx, verb, func(c *conn) error {
			if err := file(c, -1); err != nil {
				return err
			}
			return do(c)
		})
	})
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
		err := s.read(ctx, "application of a key", func(c *conn) error {
			return ignore(c.one([]any{&key}, "SELECT counts_as FROM application_aliases WHERE application = ?", key),
				storage.ErrNotFound)
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
	err = s.read(ctx, "applications", func(c *conn) (err error) {
		out, err = each(c, func(row scanner) (storage.FiledApplication, error) {
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
			if err := describe(c, &out[i]); err != nil {
				return err
			}
		}
		return nil
	})
	return out, err
}

// describe adds the hold of an application and its merged keys.
func describe(c *conn, a *storage.FiledApplication) (err error) {
	var r column.HoldRow
	err = c.one(r.Dest(), "SELECT "+column.HoldRead+" FROM application_holds h WHERE application = ?", a.Key)
	switch {
	case err == nil:
		h := r.Hold()
		a.Hold = &h
	case !errors.Is(err, storage.ErrNotFound):
		return err
	}
	a.Merged, err = each(c, func(row scanner) (key string, err error) {
		err = row.Scan(&key)
		return key, err
	}, "SELECT application FROM application_aliases WHERE counts_as = ? ORDER BY application", a.Key)
	return err
}

// ApplicationGrants implements storage.Applications.
func (s *Store) ApplicationGrants(
	ctx context.Context, key string, now time.Time, limit int,
) (n storage.ApplicationCount, err error) {
	err = s.read(ctx, "ApplicationGrants", func(c *conn) error {
		return c.one([]any{&n.Grants, &n.People}, "SELECT count(*), count(DISTINCT nullif(user_id, '')) FROM ("+grantsOf+")",
			key, column.Millis(now), limit)
	})
	return n, err
}

// HoldApplication implements storage.Applications.
func (s *Store) HoldApplication(ctx context.Context, h storage.Hold) error {
	return s.writeFiled(ctx, "HoldApplication", func(c *conn) error {
		_, err := c.exec(putHold, append(column.HoldValues(h), storage.MaxHolds)...)
		if err != nil {
			return err
		}
		var held bool
		err = c.one([]any{&held}, "SELECT EXISTS (SELECT 1 FROM application_holds WHERE application = ?)", h.Application)
		switch {
		case err != nil:
			return err
		case !held:
			return storage.ErrFull
		case !h.Blocked:
			return nil
		}
		return cutApplication(c, newApplicationCut(h.Application, storage.ByOperator, h.At), h.At)()
	})
}

// newApplicationCut returns the cut of the grants to the clients of an application.
func newApplicationCut(key string, by storage.RevokedBy, now time.Time) column.CutRow {
	return column.NewCut(secrets.ID("cut_"), storage.Selection{Application: key}, by, now)
}

func cutApplication(c *conn, row column.CutRow, now time.Time) func() error {
	return func() error {
		return all(
			noteApplicationCut(c, row.Cut().Application, now),
			run(c, putApplicationCut, row.Values(0)...),
		)
	}
}

// noteApplicationCut makes the store refuse assertions issued before a cut. Self-registered clients
// have no assertions.
func noteApplicationCut(c *conn, key string, now time.Time) func() error {
	return func() error {
		ids, err := each(c, func(row scanner) (id string, err error) {
			err = row.Scan(&id)
			return id, err
		}, "SELECT id FROM clients WHERE application = ?1 AND source NOT IN "+column.SelfRegisteredSources+
			" UNION SELECT ?1", key)
		if err != nil {
			return err
		}
		for _, id := range ids {
			if err := noteCut(c, storage.Selection{ClientID: id}, now)(); err != nil {
				return err
			}
		}
		return nil
	}
}

// DeleteApplication implements storage.Applications.
func (s *Store) DeleteApplication(ctx context.Context, key string, now time.Time) error {
	return s.writeFiled(ctx, "DeleteApplication", func(c *conn) error {
		return all(
			run(c, "UPDATE clients SET "+column.Bury+"?2 WHERE application = ?1 AND deleted_at IS NULL", key,
				column.Millis(now)),
			cutApplication(c, newApplicationCut(key, storage.ByClientDeleted, now), now),
		)
	})
}

// MergeApplications implements storage.Applications.
func (s *Store) MergeApplications(ctx context.Context, key, into string, now time.Time) error {
	return s.writeFiled(ctx, "MergeApplications", func(c *conn) error {
		var merged, cut bool
		var held int
		err := c.one([]any{&merged, &held}, `SELECT EXISTS (SELECT 1 FROM application_aliases WHERE application IN (?1, ?2)),
			(SELECT count(*) + count(DISTINCT blocked) FROM application_holds WHERE application IN (?1, ?2))`, key, into)
		if err == nil {
			err = c.one([]any{&cut}, isBeingCut, key, into)
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
		return all(
			func() error { return unitePauses(c, key, into, now) },
			run(c, "DELETE FROM application_holds WHERE application = ?", key),
			run(c, "UPDATE application_aliases SET counts_as = ?2 WHERE counts_as = ?1", key, into),
			run(c, "INSERT INTO application_aliases (application, counts_as, at) VALUES (?, ?, ?)", key, into,
				column.Millis(now)),
			run(c, "UPDATE clients SET application = ?2 WHERE application = ?1", key, into),
		)
	})
}

// SplitApplication implements storage.Applications.
func (s *Store) SplitApplication(ctx context.Context, key string, now time.Time) error {
	return s.write(ctx, "SplitApplication", func(c *conn) error {
		var of string
		var cut bool
		err := c.one([]any{&of}, "SELECT counts_as FROM application_aliases WHERE application = ?", key)
		if err == nil {
			err = c.one([]any{&cut}, isBeingCut, key, of)
		}
		switch {
		case err != nil:
			return err
		case cut:
			return storage.ErrBusy
		}
		return all(
			run(c, "DELETE FROM application_aliases WHERE application = ?", key),
			run(c, `INSERT INTO application_holds (application, name, blocked, held_by, at)
				SELECT ?1, name, blocked, held_by, at FROM application_holds WHERE application = ?2 ON CONFLICT DO NOTHING`, key, of),
			run(c, "UPDATE clients SET application = NULL WHERE application = ? AND deleted_at IS NULL", of),
			func() error { return file(c, -1) }, // a held application stays held
		)
	})
}
