package column

import (
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// The columns of identities and sessions at upstream providers.
const (
	IdentityColumns = "connector, subject, user_id, label, created_at, last_used_at, began"
	UpstreamColumns = "id, connector, subject, user_id, session_id, linked, sealed, scopes, version, created_at, checked_at, due_at, ended_at, end_reason"
)

// HomeIdentity finds the identity h that began the account o of a user; the user's id follows. An
// earlier version only stored both at the same time.
const HomeIdentity = "SELECT 1 FROM identities h JOIN users o ON o.id = h.user_id WHERE (h.began OR h.began IS NULL AND h.created_at = o.created_at) AND o.id = "

// IsNeeded is the condition that u is the newest sign-in session at the home provider of its
// account, and that its user has another authentication method. Without u, the other method could
// not sign them in (see Sessions.PutSession).
const IsNeeded = "EXISTS (" + HomeIdentity + `u.user_id AND h.connector = u.connector AND h.subject = u.subject
	AND (o.password_hash <> '' OR EXISTS (SELECT 1 FROM ways w WHERE w.user_id = o.id AND w.kind = 'passkey')
		OR EXISTS (SELECT 1 FROM recovery_codes r WHERE r.user_id = o.id AND r.used_at IS NULL)
		OR EXISTS (SELECT 1 FROM identities i WHERE i.user_id = o.id AND (i.connector, i.subject) <> (h.connector, h.subject)))
	AND NOT EXISTS (SELECT 1 FROM upstreams n WHERE n.user_id = u.user_id AND NOT n.linked AND n.connector = u.connector
		AND n.subject = u.subject AND n.ended_at IS NULL AND (n.created_at, n.id) > (u.created_at, u.id)))`

// Replaced is the end reason of a linked session that a new one replaces.
const Replaced = "replaced"

// SignedOut is the end reason of a session whose browser signed out, if no other record depends on
// it.
const SignedOut = "signed-out"

// Disabled is the end reason of the sessions of a disabled or deleted account.
const Disabled = "disabled"

// CutOff is the end reason of provider sessions that an administrator has cut.
const CutOff = "cut-off"

// IdentityRead lists the columns of an identity i. The last one says whether the account began with
// it.
const IdentityRead = "i.connector, i.subject, i.user_id, i.label, i.created_at, i.last_used_at, EXISTS (" +
	HomeIdentity + "i.user_id AND h.connector = i.connector AND h.subject = i.subject)"

// IdentityRow reads IdentityRead.
type IdentityRow struct {
	i             storage.Identity
	created, used int64
}

func (r *IdentityRow) Dest() []any {
	return []any{&r.i.Connector, &r.i.Subject, &r.i.UserID, &r.i.Label, &r.created, &r.used, &r.i.Began}
}

func (r *IdentityRow) Identity() storage.Identity {
	i := r.i
	i.CreatedAt, i.LastUsedAt = Time(r.created), Time(r.used)
	return i
}

// IdentityValues returns the values of IdentityColumns for a user's identity that is used now. A
// zero CreatedAt means now. began says that this sign-in created the account.
func IdentityValues(i storage.Identity, userID string, began bool, now time.Time) []any {
	if i.CreatedAt.IsZero() {
		i.CreatedAt = now
	}
	return []any{i.Connector, i.Subject, userID, i.Label, Millis(i.CreatedAt), Millis(now), began}
}

// UpstreamRow reads UpstreamColumns.
type UpstreamRow struct {
	u                   storage.Upstream
	sid                 *string
	scopes              string
	created             int64
	checked, due, ended *int64
}

func (r *UpstreamRow) Dest() []any {
	return []any{&r.u.ID, &r.u.Connector, &r.u.Subject, &r.u.UserID, &r.sid, &r.u.Linked, &r.u.Sealed, &r.scopes,
		&r.u.Version, &r.created, &r.checked, &r.due, &r.ended, &r.u.EndReason}
}

func (r *UpstreamRow) Upstream() (storage.Upstream, error) {
	u := r.u
	scopes, err := ParseList[string](r.scopes)
	u.SessionID, u.Scopes = OptText(r.sid), oauth.Scopes(scopes)
	u.CreatedAt, u.CheckedAt = Time(r.created), OptTime(r.checked)
	u.DueAt, u.EndedAt = OptTime(r.due), OptTime(r.ended)
	return u, err
}

// Arriving returns the session of an arrival for its user.
func Arriving(a storage.Arrival, userID string) (u storage.Upstream, err error) {
	u = a.Upstream
	u.UserID = userID
	if a.Seal != nil {
		u.Sealed, err = a.Seal(userID)
	}
	return u, err
}

// UpstreamValues returns the values of UpstreamColumns for a new session.
func UpstreamValues(u storage.Upstream) []any {
	return []any{
		u.ID, u.Connector, u.Subject, u.UserID, Text(u.SessionID), u.Linked, Bytes(u.Sealed), List(u.Scopes), 1,
		Millis(u.CreatedAt), OptMillis(u.CheckedAt), OptMillis(u.DueAt), nil, ""}
}

// KeyField is a non-empty field of an UpstreamKey.
type KeyField struct {
	Column    string
	Value     any
	orUnknown bool // NULL also matches
	atMost    bool // smaller values also match
}

// Where returns the condition for a placeholder of the value.
func (f KeyField) Where(parameter string) string {
	switch {
	case f.orUnknown:
		return "(" + f.Column + " = " + parameter + " OR " + f.Column + " IS NULL)"
	case f.atMost:
		return f.Column + " <= " + parameter
	}
	return f.Column + " = " + parameter
}

// KeyFields returns the columns that a key names. Until alone names no column.
func KeyFields(k storage.UpstreamKey) (out []KeyField) {
	for _, f := range []KeyField{
		{Column: "id", Value: k.ID}, {Column: "connector", Value: k.Connector}, {Column: "subject", Value: k.Subject},
		{Column: "session_id", Value: k.SessionID, orUnknown: k.Subject != ""}, {Column: "user_id", Value: k.UserID}} {
		if f.Value != "" {
			out = append(out, f)
		}
	}
	if len(out) > 0 && !k.Until.IsZero() {
		out = append(out, KeyField{Column: "created_at", Value: Millis(k.Until), atMost: true})
	}
	return out
}

// OtherName returns the name for a new user whose name is taken.
func OtherName(u storage.User) string { return u.Name + "-" + u.ID[max(0, len(u.ID)-6):] }
