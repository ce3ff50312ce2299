package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

const (
	putCut = "INSERT INTO cuts (" + column.CutColumns + `)
SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, coalesce(max(status_index), 0), ` + column.FirstPhase + " FROM grants"

	putTrustCut = "INSERT INTO trust_cuts (" + column.TrustCutColumns + `)
SELECT ?1, ?2, ?3, ?4, ?5, coalesce(max(status_index), 0), ` + column.FirstGrantsPhase + " FROM grants"

	// markCut marks the grants of a range, in stored order.
	markCut = `UPDATE grants AS g SET revoked_at = ?1, sweep_at = min(sweep_at, ?2), revoked_by = ?3
WHERE status_index > ?4 AND status_index <= ?5 AND revoked_at IS NULL
	AND ?6 IN ('', user_id) AND ?7 IN ('', client_id) AND ?8 IN ('', resource)
	AND (?9 = '' OR EXISTS (SELECT 1 FROM upstreams p WHERE p.id = g.upstream_id AND p.connector = ?9))
	AND (?10 = '' OR trust_id = ?10)
	AND (?11 IN ('', client_id) OR EXISTS (SELECT 1 FROM clients f WHERE f.id = g.client_id AND f.application = ?11))`

	consentKey = "(user_id, client_id, resource, place, scope)"
)

// CutGrants implements storage.Cuts.
func (s *Store) CutGrants(
	ctx context.Context, sel storage.Selection, by storage.RevokedBy, now time.Time,
) (storage.Cut, error) {
	if err := sel.Check(); err != nil {
		return storage.Cut{}, fmt.Errorf("sqlite: cut grants: %w", err)
	}
	row := column.NewCut(secrets.ID("cut_"), sel, by, now)
	if sel.Application != "" {
		err := s.writeFiled(ctx, "CutGrants", func(c *conn) error { return cutApplication(c, row, now)() })
		return row.Cut(), err
	}
	put := putCut
	if sel.Trust != "" {
		put = putTrustCut
	}
	err := s.write(ctx, "CutGrants", func(c *conn) error {
		return all(
			noteCut(c, sel, now),
			run(c, put, row.Values(0)...),
			endPauses(c, sel),
		)
	})
	return row.Cut(), err
}

// cut ends the live grants of a selection and forgets its consents. It marks a few grants itself,
// and writes a cut for more.
func cut(c *conn, sel storage.Selection, by storage.RevokedBy, now time.Time) error {
	if err := sel.Check(); err != nil {
		return err
	}
	if sel.UserID == "" && sel.ClientID == "" { // no index can find them
		row := column.NewCut(secrets.ID("cut_"), sel, by, now)
		return run(c, putCut, row.Values(0)...)()
	}
	where, args := selectedGrants(sel, 4)
	ended, err := c.exec(`UPDATE grants SET revoked_at = ?1, sweep_at = min(sweep_at, ?2), revoked_by = ?3 WHERE id IN
		(SELECT id FROM grants g WHERE `+where+" AND revoked_at IS NULL AND NOT "+column.IsCut+column.AtMost(column.CutAtOnce)+")",
		append([]any{column.Millis(now), column.Millis(now.Add(column.RevokedFor)), string(by)}, args...)...)
	if err != nil {
		return err
	}
	forgotten, err := forgetConsents(c, sel, column.CutAtOnce)
	if err != nil || ended < column.CutAtOnce && forgotten < column.CutAtOnce {
		return err
	}
	row := column.NewCut(secrets.ID("cut_"), sel, by, now)
	return run(c, putCut, row.Values(ended)...)()
}

// forgetConsents removes up to limit consents of a selection.
func forgetConsents(c *conn, sel storage.Selection, limit int) (int64, error) {
	where, args := selected(sel, 1)
	return c.exec("DELETE FROM consents WHERE "+consentKey+
		" IN (SELECT user_id, client_id, resource, place, scope FROM consents WHERE "+
		where+column.AtMost(limit)+")", args...)
}

// selected returns the condition of a selection on grants or consents, with parameters numbered
// from first.
func selected(sel storage.Selection, first int) (where string, args []any) {
	return column.Selected(sel, parameters(first), nil)
}

// selectedGrants returns the condition of a selection on grants, with the keys of their indexes.
func selectedGrants(sel storage.Selection, first int) (where string, args []any) {
	return column.Selected(sel, parameters(first),
		map[string]func(string) string{"user_id": userKey, "client_id": clientKey})
}

func parameters(first int) func(i int) string {
	return func(i int) string { return fmt.Sprintf("?%d", first+i) }
}

// noteCut makes the store refuse assertions issued before a cut. A provider issues no assertions.
func noteCut(c *conn, sel storage.Selection, now time.Time) func() error {
	if sel.Connector != "" {
		return func() error { return nil }
	}
	return run(c, numbered(column.NoteCut)+"max"+column.NotedLater, column.NotedCut(sel, now)...)
}

// cutTrust cuts the grants that depend on a trusted issuer entry.
func cutTrust(c *conn, trustID string, now time.Time) func() error {
	sel := storage.Selection{Trust: trustID}
	row := column.NewCut(secrets.ID("cut_"), sel, storage.ByTrust, now)
	return func() error {
		return all(
			noteCut(c, sel, now),
			run(c, putTrustCut, row.Values(0)...),
		)
	}
}

// PendingCuts implements storage.Cuts.
func (s *Store) PendingCuts(ctx context.Context, _ time.Time) (out []storage.Cut, err error) {
	err = s.read(ctx, "PendingCuts", func(c *conn) (err error) {
		out, err = each(c, func(row scanner) (storage.Cut, error) {
			var r column.CutRow
			err := row.Scan(r.Dest()...)
			return r.Cut(), err
		}, "SELECT "+column.CutRead+" FROM cuts UNION ALL SELECT "+column.TrustCutRead+
			" FROM trust_cuts UNION ALL SELECT "+column.ApplicationCutRead+" FROM application_cuts ORDER BY at, id")
		return err
	})
	return out, err
}

// FollowCut implements storage.Cuts. No approval runs concurrently, so a cut is finished once its
// grants are marked.
func (s *Store) FollowCut(ctx context.Context, id string, now time.Time, limit int) (out storage.Cut, err error) {
	err = s.write(ctx, "FollowCut", func(c *conn) error {
		var r column.CutRow
		err := c.one(r.Dest(), "SELECT "+column.CutRead+" FROM cuts WHERE id = ?1 UNION ALL SELECT "+
			column.TrustCutRead+" FROM trust_cuts WHERE id = ?1 UNION ALL SELECT "+column.ApplicationCutRead+
			" FROM application_cuts WHERE id = ?1", id)
		if err != nil {
			return err
		}
		if err := follow(c, &r, now, max(limit, 1)); err != nil {
			return err
		}
		out = r.Cut()
		if out.Done = r.Phase == column.CutSettled; out.Done {
			return run(c, "DELETE FROM "+r.Table()+" WHERE id = ?", id)()
		}
		if r.GrantsAlone() {
			return run(c, "UPDATE "+r.Table()+" SET grants = ?2, phase = ?3, place = ?4 WHERE id = ?1", id, out.Grants,
				r.Phase, r.Place)()
		}
		return run(c, "UPDATE cuts SET grants = ?2, phase = ?3, place = ?4, reached = ?5 WHERE id = ?1", id,
			out.Grants, r.Phase, r.Place, r.Reached)()
	})
	return out, err
}

func follow(c *conn, r *column.CutRow, now time.Time, limit int) error {
	sel := r.Cut().Selection
	switch {
	case r.Phase == column.CutMarks:
		return mark(c, r, now, limit)
	case sel.Connector != "":
		return signOut(c, r, now, limit)
	case sel.Trust != "":
		r.NothingElse()
		return nil
	}
	n, err := forgetConsents(c, sel, limit)
	r.Forgot(int(n), limit)
	return err
}

// mark marks the next grants in stored order. It needs no index for the selection, and reads at
// most limit grants.
func mark(c *conn, r *column.CutRow, now time.Time, limit int) error {
	cut := r.Cut()
	var looked int
	var last int64
	err := c.one([]any{&looked, &last}, `SELECT count(*), coalesce(max(status_index), ?1) FROM
		(SELECT status_index FROM grants WHERE status_index > ?1 AND status_index <= ?2 ORDER BY status_index LIMIT ?3)`, r.Place, r.UpTo, limit)
	if err != nil {
		return err
	}
	n, err := c.exec(markCut, column.Millis(cut.At), column.Millis(now.Add(column.RevokedFor)), string(cut.By),
		r.Place, last,
		cut.UserID, cut.ClientID, cut.Resource, cut.Connector, cut.Trust, cut.Application)
	r.Marked(n, looked, limit, last)
	return err
}

// signOut ends the next provider sessions.
func signOut(c *conn, r *column.CutRow, now time.Time, limit int) error {
	cut := r.Cut()
	var looked int
	var last string
	err := c.one([]any{&looked, &last},
		"SELECT count(*), coalesce(max(id), ?1) FROM (SELECT id FROM upstreams WHERE id > ?1 ORDER BY id"+
			column.AtMost(limit)+")", r.Reached)
	if err != nil {
		return err
	}
	const these = "id > ?2 AND id <= ?3 AND connector = ?4 AND created_at <= ?5"
	args := []any{r.Reached, last, cut.Connector, column.Millis(cut.At)}
	if err := handOver(c, these, now, args...)(); err != nil {
		return err
	}
	r.SignedOut(looked, limit, last)
	_, err = endUpstreams(c, "id > ? AND id <= ? AND connector = ? AND created_at <= ?", args, column.CutOff, now)
	return err
}
