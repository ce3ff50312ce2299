package column

import (
	"fmt"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// CutAtOnce is how many grants a verb marks by itself. If there are more, it writes a cut that
// FollowCut completes.
const CutAtOnce = 256

// CutSettles is how long a cut stays after its grants are marked, for approvals that run at the
// same time. It is longer than any verb runs. After it, the cut is checked a second time.
const CutSettles = 30 * time.Second

// The phases of a cut.
const (
	CutMarks   = 0 // grants
	CutForgets = 1 // consents, or sessions at a provider
	CutSettled = 2 // approvals that were running when it began
)

// CutColumns are the columns of a cut, CutRead the columns that are read.
const (
	CutColumns = "id, user_id, client_id, resource, connector, revoked_by, at, grants, upto, phase, place, reached"
	CutRead    = CutColumns + ", '' AS trust_id, '' AS application"
)

// Cuts by trusted issuer entry and by application have their own tables. In the shared table, a
// replica of an earlier version would not know the selecting column. It would take the row for the
// end of every grant (AS-232).
const (
	TrustCutColumns       = "id, trust_id, revoked_by, at, grants, upto, phase, place"
	TrustCutRead          = "id, '', '', '', '', revoked_by, at, grants, upto, phase, place, '', trust_id, ''"
	ApplicationCutColumns = "id, application, revoked_by, at, grants, upto, phase, place"
	ApplicationCutRead    = "id, '', '', '', '', revoked_by, at, grants, upto, phase, place, '', '', application"
	FirstGrantsPhase      = "0, 0" // in both tables
)

// FirstPhase is the start of a cut.
const FirstPhase = "0, 0, ''"

// Conditions that a row k of cuts, trust_cuts or application_cuts covers the grant g, with any
// status index.
const (
	isOfCut = `k.user_id IN ('', g.user_id) AND k.client_id IN ('', g.client_id) AND k.resource IN ('', g.resource)
	AND (k.connector = '' OR EXISTS (SELECT 1 FROM upstreams p WHERE p.id = g.upstream_id AND p.connector = k.connector))`
	isOfTrustCut       = "k.trust_id = g.trust_id"
	isOfApplicationCut = "(k.application = g.client_id OR k.application = (SELECT f.application FROM clients f WHERE f.id = g.client_id))"
)

// IsCut is the condition that the grant g is cut. The tables are empty except while a cut is being
// followed.
const IsCut = `(EXISTS (SELECT 1 FROM cuts k WHERE k.upto >= g.status_index AND ` + isOfCut + `)
	OR g.trust_id IS NOT NULL AND EXISTS (SELECT 1 FROM trust_cuts k WHERE k.upto >= g.status_index AND ` + isOfTrustCut + `)
	OR EXISTS (SELECT 1 FROM application_cuts k WHERE k.upto >= g.status_index AND ` + isOfApplicationCut + "))"

// listedAtOnce is the largest range of status indexes where Unmarked looks for the grants of a cut.
// Each status list would read its part of them once a second, which is too much for a larger table.
const listedAtOnce = 1 << 20

// Unmarked returns a query for the status indexes of grants that match the condition admitted, are
// cut, and are not marked yet: those after the place of their cut. It omits a grant that was being
// stored during the cut. The second check of the cut finds it.
func Unmarked(admitted string) string {
	of := func(table, isOf string) string {
		return "SELECT g.status_index FROM " + table + ` k JOIN grants g ON g.status_index > k.place AND g.status_index <= k.upto
	AND ` + admitted + " AND " + isOf + fmt.Sprintf(" WHERE k.phase = 0 AND k.upto - k.place <= %d", listedAtOnce)
	}
	return of("cuts", isOfCut) + "\nUNION " + of("trust_cuts", isOfTrustCut) + "\nUNION " +
		of("application_cuts", isOfApplicationCut)
}

// IsForgotten is the condition that the consent c was cut with its grants.
const IsForgotten = `(EXISTS (SELECT 1 FROM cuts k WHERE k.phase < 2 AND k.connector = ''
	AND k.user_id IN ('', c.user_id) AND k.client_id IN ('', c.client_id) AND k.resource IN ('', c.resource))
	OR EXISTS (SELECT 1 FROM application_cuts k WHERE k.phase < 2
		AND (k.application = c.client_id OR k.application = (SELECT f.application FROM clients f WHERE f.id = c.client_id))))`

// IsSignedOut is the condition that the browser session s ended with its provider.
const IsSignedOut = `EXISTS (SELECT 1 FROM cuts k JOIN upstreams p ON p.connector = k.connector
	WHERE p.id = s.upstream_id AND s.created_at <= k.at)`

// CutRow reads CutRead.
type CutRow struct {
	c       storage.Cut
	by      string
	at      int64
	UpTo    int64
	Phase   int
	Place   int64  // the last status_index read in this phase
	Reached string // the last provider session read
}

// NewCut returns the row of a new cut, without its upto.
func NewCut(id string, sel storage.Selection, by storage.RevokedBy, now time.Time) CutRow {
	return CutRow{c: storage.Cut{ID: id, Selection: sel}, by: string(by), at: Millis(now)}
}

func (r *CutRow) Dest() []any {
	return []any{
		&r.c.ID, &r.c.UserID, &r.c.ClientID, &r.c.Resource, &r.c.Connector, &r.by, &r.at, &r.c.Grants, &r.UpTo,
		&r.Phase, &r.Place, &r.Reached, &r.c.Trust, &r.c.Application,
	}
}

// Table returns the table of the row.
func (r *CutRow) Table() string {
	switch {
	case r.c.Trust != "":
		return "trust_cuts"
	case r.c.Application != "":
		return "application_cuts"
	}
	return "cuts"
}

// GrantsAlone reports whether the cut affects grants only, and not the sessions at a provider.
func (r *CutRow) GrantsAlone() bool { return r.c.Trust != "" || r.c.Application != "" }

// Values returns the values of the columns up to grants.
func (r *CutRow) Values(grants int64) []any {
	if r.GrantsAlone() { // one of the two is empty
		return []any{r.c.ID, r.c.Trust + r.c.Application, r.by, r.at, grants}
	}
	return []any{r.c.ID, r.c.UserID, r.c.ClientID, r.c.Resource, r.c.Connector, r.by, r.at, grants}
}

func (r *CutRow) Cut() storage.Cut {
	c := r.c
	c.By, c.At = storage.RevokedBy(r.by), Time(r.at)
	c.All = false
	c.All = c.Selection == storage.Selection{}
	return c
}

// Marked adds n marked grants of a batch that read looked grants, up to last.
func (r *CutRow) Marked(n int64, looked, limit int, last int64) {
	r.c.Grants += n
	r.Place = last
	r.next(looked, limit)
}

// SignedOut stores the last provider session that a batch has read.
func (r *CutRow) SignedOut(looked, limit int, last string) {
	r.Reached = last
	r.next(looked, limit)
}

// NothingElse moves on from the grants of a cut that affects grants only.
func (r *CutRow) NothingElse() { r.next(0, 1) }

// Forgot records how many consents a batch has found.
func (r *CutRow) Forgot(n, limit int) { r.next(n, limit) }

// next begins the next phase if the batch was not full.
func (r *CutRow) next(looked, limit int) {
	if looked < limit {
		r.Phase, r.Place, r.Reached = r.Phase+1, 0, ""
	}
}

// AtMost returns a LIMIT clause.
func AtMost(limit int) string { return fmt.Sprintf(" LIMIT %d", limit) }

// Selected returns the condition of a selection on grants or consents, and its arguments. parameter
// returns the placeholder of argument i. keys adds a condition per column for an index of the
// database.
func Selected(
	sel storage.Selection, parameter func(i int) string, keys map[string]func(string) string,
) (where string, args []any) {
	if sel.Application != "" {
		p := parameter(0)
		return "(client_id = " + p + " OR client_id IN (SELECT id FROM clients WHERE application = " + p + "))",
			[]any{sel.Application}
	}
	where = "true"
	for i, f := range SelectionFields(sel) {
		where += " AND " + f.Where(parameter(i))
		if key := keys[f.Column]; key != nil {
			where += " AND " + key(parameter(i))
		}
		args = append(args, f.Value)
	}
	return where, args
}

// SelectionFields returns the columns of grants and consents that a selection names.
func SelectionFields(s storage.Selection) (out []KeyField) {
	for _, f := range []KeyField{
		{Column: "user_id", Value: s.UserID}, {Column: "client_id", Value: s.ClientID},
		{Column: "resource", Value: s.Resource},
	} {
		if f.Value != "" {
			out = append(out, f)
		}
	}
	return out
}
