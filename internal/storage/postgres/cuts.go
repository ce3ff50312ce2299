package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/internal/column"
)

const (
	// putCut reads how many grants have been numbered by all connections, including those being
	// stored now.
	putCut = "INSERT INTO cuts (" + column.CutColumns + `)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, (` + lastNumber + `grants_status_index_seq), ` + column.FirstPhase + ")"

	putTrustCut = "INSERT INTO trust_cuts (" + column.TrustCutColumns + `)
VALUES ($1, $2, $3, $4, $5, (` + lastNumber + `grants_status_index_seq), ` + column.FirstGrantsPhase + ")"

	readCut      = "SELECT " + column.CutRead + " FROM cuts WHERE id = $1 FOR UPDATE"
	readTrustCut = "SELECT " + column.TrustCutRead + " FROM trust_cuts WHERE id = $1 FOR UPDATE"

	pendingCuts = "SELECT " + column.CutRead + " FROM cuts WHERE phase < $1 OR at <= $2 UNION ALL SELECT " +
		column.TrustCutRead + " FROM trust_cuts WHERE phase < $1 OR at <= $2 UNION ALL SELECT " +
		column.ApplicationCutRead + " FROM application_cuts WHERE phase < $1 OR at <= $2 ORDER BY at, id"

	moveGrantsCut = "UPDATE %s SET grants = $2, phase = $3, place = $4 WHERE id = $1"

	moveCut = "UPDATE cuts SET grants = $2, phase = $3, place = $4, reached = $5 WHERE id = $1"

	// markCut marks the next grants in stored order. It needs no index for the selection, and reads
	// at most limit grants. It checks the selection where it reads a grant, not where it updates
	// it. Without statistics, the planner would assume few cut grants there, and search the batch
	// for each of them.
	markCut = `WITH looked AS MATERIALIZED (SELECT id, status_index, revoked_at IS NULL
		AND $7 IN ('', user_id) AND $8 IN ('', client_id) AND $9 IN ('', resource)
		AND ($10 = '' OR EXISTS (SELECT 1 FROM upstreams p WHERE p.id = g.upstream_id AND p.connector = $10))
		AND ($11 = '' OR coalesce(trust_id, '') = $11)
		AND ($12 IN ('', client_id) OR EXISTS (SELECT 1 FROM clients f WHERE f.id = g.client_id AND f.application = $12)) AS cut
	FROM grants g WHERE status_index > $1 AND status_index <= $2 ORDER BY status_index LIMIT $3),
marked AS (UPDATE grants SET revoked_at = $4, sweep_at = least(sweep_at, $5), revoked_by = $6
	WHERE id = ANY (ARRAY(SELECT id FROM looked WHERE cut)) AND revoked_at IS NULL
	RETURNING 1)
SELECT (SELECT count(*) FROM looked), (SELECT coalesce(max(status_index), $1) FROM looked), (SELECT count(*) FROM marked)`

	// endFew ends the selected live grants, and counts both: grants that another verb has ended
	// meanwhile still count as selected.
	endFew = `,
ended AS (UPDATE grants SET revoked_at = $1, sweep_at = least(sweep_at, $2), revoked_by = $3
	WHERE revoked_at IS NULL AND id IN (SELECT id FROM few) RETURNING 1)
SELECT (SELECT count(*) FROM few), (SELECT count(*) FROM ended)`

	forgetFew = `,
gone AS (DELETE FROM consents WHERE (user_id, client_id, resource, place, scope) IN (SELECT * FROM few))
SELECT count(*) FROM few`
)

// CutGrants implements storage.Cuts.
func (s *Store) CutGrants(
	ctx context.Context, sel storage.Selection, by storage.RevokedBy, now time.Time,
) (storage.Cut, error) {
	if err := sel.Check(); err != nil {
		return storage.Cut{}, fmt.Errorf("postgres: cut grants: %w", err)
	}
	row := column.NewCut(secrets.ID("cut_"), sel, by, now)
	if sel.Application != "" {
		err := s.filedTx(ctx, "CutGrants", s.tx, func(ctx context.Context, q querier) error {
			return cutApplication(ctx, q, row, now)
		})
		return row.Cut(), err
	}
	put := putCut
	if sel.Trust != "" {
		put = putTrustCut
	}
	err := s.do(ctx, "CutGrants", func(ctx context.Context, q querier) error {
		return all(ctx, q, append(noteCut(sel, now), statement{put, row.Values(0)}, endPauses(sel))...)
	})
	return row.Cut(), err
}

// cut ends the live grants of a selection and forgets its consents. It marks a few grants itself,
// and writes a cut for more.
func cut(ctx context.Context, q querier, sel storage.Selection, by storage.RevokedBy, now time.Time) error {
	if err := sel.Check(); err != nil {
		return err
	}
	if sel.UserID == "" && sel.ClientID == "" { // no index can find them
		row := column.NewCut(secrets.ID("cut_"), sel, by, now)
		return all(ctx, q, statement{putCut, row.Values(0)})
	}
	where, args := selectedGrants(sel, 4)
	var few, ended int64
	err := one(ctx, q, []any{&few, &ended},
		"WITH few AS MATERIALIZED (SELECT id FROM grants g WHERE "+where+" AND revoked_at IS NULL AND NOT "+
			column.IsCut+column.AtMost(column.CutAtOnce)+")"+endFew,
		append([]any{column.Millis(now), column.Millis(now.Add(column.RevokedFor)), string(by)}, args...)...)
	if err != nil {
		return err
	}
	forgotten, err := forget(ctx, q, sel, column.CutAtOnce)
	switch {
	case err != nil:
		return err
	case few == column.CutAtOnce || forgotten == column.CutAtOnce:
		row := column.NewCut(secrets.ID("cut_"), sel, by, now)
		return all(ctx, q, statement{putCut, row.Values(ended)})
	case ended+int64(forgotten) == 0:
		return settle(ctx, q)
	}
	return nil
}

// forget removes up to limit consents of a selection, and returns how many it found.
func forget(ctx context.Context, q querier, sel storage.Selection, limit int) (found int, err error) {
	where, args := selected(sel, 1)
	err = one(ctx, q, []any{&found},
		"WITH few AS MATERIALIZED (SELECT user_id, client_id, resource, place, scope FROM consents WHERE "+
			where+column.AtMost(limit)+")"+forgetFew, args...)
	return found, err
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
	return func(i int) string { return fmt.Sprintf("$%d", first+i) }
}

// cutTrust cuts the grants that depend on a trusted issuer entry.
func cutTrust(trustID string, now time.Time) []statement {
	sel := storage.Selection{Trust: trustID}
	row := column.NewCut(secrets.ID("cut_"), sel, storage.ByTrust, now)
	return append(noteCut(sel, now), statement{putTrustCut, row.Values(0)})
}

// noteCut makes the store refuse assertions issued before a cut. A provider issues no assertions.
// Its record is stored before the cut, see trustStands.
func noteCut(sel storage.Selection, now time.Time) []statement {
	if sel.Connector != "" {
		return nil
	}
	return []statement{{column.NoteCut + "greatest" + column.NotedLater, column.NotedCut(sel, now)}}
}

// PendingCuts implements storage.Cuts.
func (s *Store) PendingCuts(ctx context.Context, now time.Time) (out []storage.Cut, err error) {
	err = s.do(ctx, "PendingCuts", func(ctx context.Context, q querier) (err error) {
		out, err = each(ctx, q, func(row pgx.CollectableRow) (storage.Cut, error) {
			var r column.CutRow
			err := row.Scan(r.Dest()...)
			return r.Cut(), err
		}, pendingCuts, column.CutSettled, column.Millis(now.Add(-column.CutSettles)))
		return err
	})
	return out, err
}

// FollowCut implements storage.Cuts. Callers take turns with the lock on the cut.
func (s *Store) FollowCut(ctx context.Context, id string, now time.Time, limit int) (out storage.Cut, err error) {
	// a cut by application has not seen unfiled clients
	err = s.filedTx(ctx, "FollowCut", s.txCommitted, func(ctx context.Context, q querier) error {
		var r column.CutRow
		err := one(ctx, q, r.Dest(), readCut, id)
		if errors.Is(err, pgx.ErrNoRows) {
			err = one(ctx, q, r.Dest(), readTrustCut, id)
		}
		if errors.Is(err, pgx.ErrNoRows) {
			err = one(ctx, q, r.Dest(), readApplicationCut, id)
		}
		if err != nil {
			return err
		}
		before := r.Phase
		if err := follow(ctx, q, &r, now, max(limit, 1)); err != nil {
			return err
		}
		out = r.Cut()
		out.Done = before < column.CutSettled && r.Phase == column.CutSettled
		if r.Phase > column.CutSettled {
			return all(ctx, q, statement{"DELETE FROM " + r.Table() + " WHERE id = $1", []any{id}})
		}
		if r.GrantsAlone() {
			move := fmt.Sprintf(moveGrantsCut, r.Table())
			return all(ctx, q, statement{move, []any{id, out.Grants, r.Phase, r.Place}})
		}
		return all(ctx, q, statement{moveCut, []any{id, out.Grants, r.Phase, r.Place, r.Reached}})
	})
	return out, err
}

func follow(ctx context.Context, q querier, r *column.CutRow, now time.Time, limit int) error {
	c := r.Cut()
	switch {
	case r.Phase == column.CutMarks:
		return mark(ctx, q, r, now, limit)
	case r.Phase == column.CutSettled && now.Before(c.At.Add(column.CutSettles)):
		return pgx.ErrNoRows // not yet: an approval numbered before the cut may be running
	case r.Phase == column.CutSettled:
		return mark(ctx, q, r, now, limit)
	case c.Connector != "":
		return signOut(ctx, q, r, now, limit)
	case c.Trust != "":
		r.NothingElse()
		return nil
	}
	n, err := forget(ctx, q, c.Selection, limit)
	r.Forgot(n, limit)
	return err
}

func mark(ctx context.Context, q querier, r *column.CutRow, now time.Time, limit int) error {
	c := r.Cut()
	var looked int
	var last, marked int64
	err := one(ctx, q, []any{&looked, &last, &marked}, markCut, r.Place, r.UpTo, limit,
		column.Millis(c.At), column.Millis(now.Add(column.RevokedFor)), string(c.By), c.UserID, c.ClientID,
		c.Resource, c.Connector, c.Trust, c.Application)
	r.Marked(marked, looked, limit, last)
	return err
}

// signOut ends the next provider sessions.
func signOut(ctx context.Context, q querier, r *column.CutRow, now time.Time, limit int) error {
	c := r.Cut()
	var looked int
	var last string
	err := one(ctx, q, []any{&looked, &last},
		"SELECT count(*), coalesce(max(id), $1) FROM (SELECT id FROM upstreams WHERE id > $1 ORDER BY id"+
			column.AtMost(limit)+") u", r.Reached)
	if err != nil {
		return err
	}
	ended, err := endUpstreams(ctx, q, "id > $1 AND id <= $2 AND connector = $3 AND created_at <= $4",
		[]any{r.Reached, last, c.Connector, column.Millis(c.At)}, column.CutOff, now)
	r.SignedOut(looked, limit, last)
	if err != nil {
		return err
	}
	return all(ctx, q, handOver(ended, now)...)
}
