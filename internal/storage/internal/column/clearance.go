package column

import (
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// ClearanceColumns are the columns of a tool call approval, in the order of ClearanceValues.
// ClearanceRead are the columns that are read.
const (
	ClearanceColumns = "binding, id, user_id, client_id, grant_id, node_id, resource, tool, digest, by_whom, approvers," +
		" acr, max_age, sealed, state, giver_id, created_at, expires_at"
	ClearanceRead = "id, user_id, client_id, grant_id, node_id, resource, tool, digest, by_whom," +
		" approvers, acr, max_age, sealed, state, giver_id, created_at, expires_at"
)

// ClearanceLive returns the condition that the grant, node and client of the approval w are live at
// now, a parameter. grantIsCut and nodeIsCut are the database's conditions for the grant g and the
// node n.
func ClearanceLive(now, grantIsCut, nodeIsCut string) string {
	return `(w.grant_id <> '' OR NOT EXISTS (SELECT 1 FROM clients d WHERE d.id = w.client_id AND d.deleted_at IS NOT NULL))
	AND (w.grant_id = '' OR EXISTS (SELECT 1 FROM grants g WHERE g.id = w.grant_id AND g.revoked_at IS NULL AND g.paused_at IS NULL
		AND g.expires_at > ` + now + ` AND NOT ` + grantIsCut + `))
	AND (w.node_id = '' OR EXISTS (SELECT 1 FROM nodes n WHERE n.id = w.node_id AND n.grant_id = w.grant_id AND n.expires_at > ` + now + `
		AND NOT ` + nodeIsCut + `))`
}

// Denied returns a query for the denial of a call that holds for its application. Its parameters
// are the user, application, resource, tool, arguments digest, and now; parameter returns their
// placeholders.
func Denied(parameter func(i int) string) string {
	return "SELECT " + ClearanceRead + " FROM clearances w WHERE w.user_id = " + parameter(0) +
		" AND w.application = " + parameter(1) + " AND w.resource = " + parameter(2) + " AND w.tool = " + parameter(3) +
		" AND w.digest = " + parameter(4) + " AND w.state = 'refused' AND w.expires_at > " + parameter(5) +
		" ORDER BY w.expires_at DESC, w.id LIMIT 1"
}

// DeniedValues returns the values of Denied for a call of an application.
func DeniedValues(c storage.Clearance, application string) []any {
	return []any{c.UserID, application, c.Resource, c.Tool, c.Digest[:], Millis(c.CreatedAt)}
}

// GiverStands returns the condition that the user who gave w could still give it now. The account
// must be enabled and meet mayDecide, the result of MayDecide.
func GiverStands(mayDecide string) string {
	return "EXISTS (SELECT 1 FROM users u WHERE u.id = w.giver_id AND NOT u.disabled AND " + mayDecide + ")"
}

// MayDecide returns the condition that the user u may decide the approval w. position is the
// database's function that finds a text in another, lineFeed its expression for a line feed.
func MayDecide(position, lineFeed string) string {
	return `(w.by_whom = 'person' AND w.user_id = u.id
		OR w.by_whom = 'other' AND w.user_id <> u.id AND (w.approvers = '' AND u.admin
			OR w.approvers <> '' AND ` + position + `(w.approvers, ` + lineFeed + ` || u.name_key || ` + lineFeed + `) > 0))`
}

// approvers returns the column value of names: each is between line feeds, which names never
// contain.
func approvers(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return "\n" + strings.Join(names, "\n") + "\n"
}

// ClearanceValues returns the values of ClearanceColumns.
func ClearanceValues(c storage.Clearance) []any {
	key := c.Key()
	return []any{
		key[:], c.ID, c.UserID, c.ClientID, c.GrantID, c.NodeID, c.Resource, c.Tool, c.Digest[:], c.By,
		approvers(c.Approvers), List(c.ACR), c.MaxAge.Milliseconds(), c.Sealed, string(c.State), c.GiverID,
		Millis(c.CreatedAt), Millis(c.ExpiresAt),
	}
}

// ClearanceRow reads ClearanceRead.
type ClearanceRow struct {
	c                storage.Clearance
	digest           []byte
	approvers, acr   string
	state            string
	maxAge           int64
	created, expires int64
}

func (r *ClearanceRow) Dest() []any {
	return []any{
		&r.c.ID, &r.c.UserID, &r.c.ClientID, &r.c.GrantID, &r.c.NodeID, &r.c.Resource, &r.c.Tool, &r.digest, &r.c.By,
		&r.approvers, &r.acr, &r.maxAge, &r.c.Sealed, &r.state, &r.c.GiverID, &r.created, &r.expires,
	}
}

func (r *ClearanceRow) Clearance() (c storage.Clearance, err error) {
	c = r.c
	if c.Digest, err = Hash(r.digest); err != nil {
		return c, err
	}
	if r.approvers != "" {
		c.Approvers = strings.Split(strings.Trim(r.approvers, "\n"), "\n")
	}
	c.ACR, err = ParseList[string](r.acr)
	c.MaxAge, c.State = time.Duration(r.maxAge)*time.Millisecond, storage.ClearanceState(r.state)
	c.CreatedAt, c.ExpiresAt = Time(r.created), Time(r.expires)
	return c, err
}

// Rebound returns a tool call approval moved to the grant of an approval a, and whether it may
// move: the user, client and resource must be the same.
func Rebound(c storage.Clearance, a storage.Approval) (storage.Clearance, bool) {
	may := c.UserID == a.Grant.UserID && c.ClientID == a.Grant.ClientID && c.Resource == a.Grant.Resource
	c.GrantID, c.NodeID = a.Grant.ID, ""
	return c, may
}

// Decided returns the state after a decision.
func Decided(d storage.ClearanceDecision) string {
	if d.Give {
		return string(storage.ClearanceGiven)
	}
	return string(storage.ClearanceRefused)
}

// Undecided returns why a live tool call approval was not decided. session says whether the
// decision's session is live.
func Undecided(c storage.Clearance, session bool) error {
	switch {
	case c.State != storage.ClearanceWaits:
		return storage.ErrSpent
	case !session:
		return storage.ErrSignedOut
	}
	return storage.ErrMismatch
}
