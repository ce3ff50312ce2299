package column

import (
	"fmt"
	"time"

	"github.com/mcp-authd/mcp-authd/storage"
)

// CutAtOnce is how many grants a verb marks by itself; what has more of them is cut as a whole
// and followed.
const CutAtOnce = 256

// CutSettles is how long a cut stays once its grants are marked, where an approval may be
// under way beside it: longer than a verb lasts. Then it looks a second time.
const CutSettles = 30 * time.Second

// The phases of a cut.
const (
	CutMarks   = 0 // grants
	CutForgets = 1 // consents, or sessions at a provider
	CutSettled = 2 // what was under way when it began
)

// CutColumns are the columns of a cut, and CutRead what is read of one.
const (
	CutColumns = "id, user_id, client_id, resource, connector, revoked_by, at, grants, upto, phase, place, reached"
	CutRead    = CutColumns + ", '' AS trust_id, '' AS application"
)

// A cut by trust entry has a table of its own, and so has one by application: a replica of an earlier version
// would take a row in the other one, which selects by what it does not know, for the end of every grant (AS-232).
const (
	TrustCutColumns       = "id, trust_id, revoked_by, at, grants, upto, phase, place"
	TrustCutRead          = "id, '', '', '', '', revoked_by, at, grants, upto, phase, place, '', trust_id, ''"
	ApplicationCutColumns = "id, application, revoked_by, at, grants, upto, phase, place"
	ApplicationCutRead    = "id, '', '', '', '', revoked_by, at, grants, upto, phase, place, '', '', application"
	FirstGrantsPhase      = "0, 0" // of both
)

// FirstPhase is where a cut begins.
const FirstPhase = "0, 0, ''"

// Conditions that a row k of cuts, trust_cuts or application_cuts covers the grant g, whatever its status index.
const (
	isOfCut = `k.user_id IN ('', g.user_id) AND k.client_id IN ('', g.client_id) AND k.resource IN ('', g.resource)
	AND (k.connector = '' OR EXISTS (SELECT 1 FROM upstreams p WHERE p.id = g.upstream_id AND p.connector = k.connector))`
	isOfTrustCut       = "k.trust_id = g.trust_id"
	isOfApplicationCut = "(k.application = g.client_id OR k.application = (SELECT f.application FROM clients f WHERE f.id = g.client_id))"
)

// IsCut is the condition that the grant g was cut as a whole. The tables are empty but for the
// moments in which a cut is followed.
const IsCut = `(EXISTS (SELECT 1 FROM cuts k WHERE k.upto >= g.status_index AND ` + isOfCut + `)
	OR g.trust_id IS NOT NULL AND EXISTS (SELECT 1 FROM trust_cuts k WHERE k.upto >= g.status_index AND ` + isOfTrustCut + `)
	OR EXISTS (SELECT 1 FROM application_cuts k WHERE k.upto >= g.status_index AND ` + isOfApplicationCut + "))"

// listedAtOnce is among how many status indexes Unmarked looks for the grants of a cut. Each list would read its part
// of them once a second, which is too much for a table with many more.
const listedAtOnce = 1 << 20

// Unmarked returns a query for the status indexes of grants that match the condition admitted, are cut, and are not
// marked yet: those after the place of their cut. It leaves out a grant that was being stored as the cut was made,
// which the cut meets at its second look.
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
	Place   int64  // the last status_index that was looked at in this phase
	Reached string // the last session at a provider that was
}

// NewCut is the row of a cut that begins, beside its upto.
func NewCut(id string, sel storage.Selection, by storage.RevokedBy, now time.Time) CutRow {
	return CutRow{c: storage.Cut{ID: id, Selection: sel}, by: string(by), at: Millis(now)}
}

// Dest is what to scan into.
func (r *CutRow) Dest() []any {
	return []any{
		&r.c.ID, &r.c.UserID, &r.c.ClientID, &r.c.Resource, &r.c.Connector, &r.by, &r.at, &r.c.Grants, &r.UpTo,
		&r.Phase, &r.Place, &r.Reached, &r.c.Trust, &r.c.Application,
	}
}

// Table is where the row is.
func (r *CutRow) Table() string {
	switch {
	case r.c.Trust != "":
		return "trust_cuts"
	case r.c.Application != "":
		return "application_cuts"
	}
	return "cuts"
}

// GrantsAlone reports whether the row has no place among the sessions at a provider.
func (r *CutRow) GrantsAlone() bool { return r.c.Trust != "" || r.c.Application != "" }

// Values are the values of the columns up to grants.
func (r *CutRow) Values(grants int64) []any {
	if r.GrantsAlone() { // of the two, one is empty
		return []any{r.c.ID, r.c.Trust + r.c.Application, r.by, r.at, grants}
	}
	return []any{r.c.ID, r.c.UserID, r.c.ClientID, r.c.Resource, r.c.Connector, r.by, r.at, grants}
}

// Cut is the record that was read.
func (r *CutRow) Cut() storage.Cut {
	c := r.c
	c.By, c.At = storage.RevokedBy(r.by), Time(r.at)
	c.All = false
	c.All = c.Selection == storage.Selection{}
	return c
}

// Marked counts grants that a batch has marked, looked being all that it has looked at, up to
// last.
func (r *CutRow) Marked(n int64, looked, limit int, last int64) {
	r.c.Grants += n
	r.Place = last
	r.next(looked, limit)
}

// SignedOut notes the last session at a provider that a batch has looked at.
func (r *CutRow) SignedOut(looked, limit int, last string) {
	r.Reached = last
	r.next(looked, limit)
}

// NothingElse is the phase after the grants of a cut that is about grants alone.
func (r *CutRow) NothingElse() { r.next(0, 1) }

// Forgot notes how many consents a batch has found.
func (r *CutRow) Forgot(n, limit int) { r.next(n, limit) }

// next begins the next phase when there was less than a whole batch.
func (r *CutRow) next(looked, limit int) {
	if looked < limit {
		r.Phase, r.Place, r.Reached = r.Phase+1, 0, ""
	}
}

// AtMost limits a statement.
func AtMost(limit int) string { return fmt.Sprintf(" LIMIT %d", limit) }

// Selected is the condition of a selection on grants or consents, and its parameters, the i-th of
// which is written as parameter says. Keys narrow down columns by an index that a database has.
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

// SelectionFields are the columns of grants and consents that a selection names.
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
