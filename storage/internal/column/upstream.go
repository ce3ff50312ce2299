package column

import (
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/storage"
)

// The columns of what is kept about upstream providers.
const (
	IdentityColumns = "connector, subject, user_id, label, created_at, last_used_at, began"
	UpstreamColumns = "id, connector, subject, user_id, session_id, linked, sealed, scopes, version, created_at, checked_at, due_at, ended_at, end_reason"
)

// HomeIdentity finds the identity h with which the account o of a user began, whose id is to follow. An earlier
// version has stored both at one time, and nothing else about it.
const HomeIdentity = "SELECT 1 FROM identities h JOIN users o ON o.id = h.user_id WHERE (h.began OR h.began IS NULL AND h.created_at = o.created_at) AND o.id = "

// IsNeeded is the condition that u is the newest live session of a sign-in at the provider at which its
// account began, and that its person has another way in: without u that way would not sign them in (see
// Sessions.PutSession).
const IsNeeded = "EXISTS (" + HomeIdentity + `u.user_id AND h.connector = u.connector AND h.subject = u.subject
	AND (o.password_hash <> '' OR EXISTS (SELECT 1 FROM ways w WHERE w.user_id = o.id AND w.kind = 'passkey')
		OR EXISTS (SELECT 1 FROM recovery_codes r WHERE r.user_id = o.id AND r.used_at IS NULL)
		OR EXISTS (SELECT 1 FROM identities i WHERE i.user_id = o.id AND (i.connector, i.subject) <> (h.connector, h.subject)))
	AND NOT EXISTS (SELECT 1 FROM upstreams n WHERE n.user_id = u.user_id AND NOT n.linked AND n.connector = u.connector
		AND n.subject = u.subject AND n.ended_at IS NULL AND (n.created_at, n.id) > (u.created_at, u.id)))`

// Replaced is the reason for which a linked session ends when there is a new one.
const Replaced = "replaced"

// SignedOut is the reason for which the session ends that a browser has signed out of, when
// nothing else rests on it.
const SignedOut = "signed-out"

// Disabled is the reason for which the sessions of a disabled or deleted account end.
const Disabled = "disabled"

// CutOff is the reason for which the sessions at a provider end that the operator has cut off.
const CutOff = "cut-off"

// IdentityRead are the columns of an identity i. Whether the account began with it follows from both.
const IdentityRead = "i.connector, i.subject, i.user_id, i.label, i.created_at, i.last_used_at, EXISTS (" +
	HomeIdentity + "i.user_id AND h.connector = i.connector AND h.subject = i.subject)"

// IdentityRow reads IdentityRead.
type IdentityRow struct {
	i             storage.Identity
	created, used int64
}

// Dest is what to scan into.
func (r *IdentityRow) Dest() []any {
	return []any{&r.i.Connector, &r.i.Subject, &r.i.UserID, &r.i.Label, &r.created, &r.used, &r.i.Began}
}

// Identity is the record that was read.
func (r *IdentityRow) Identity() storage.Identity {
	i := r.i
	i.CreatedAt, i.LastUsedAt = Time(r.created), Time(r.used)
	return i
}

// IdentityValues are the values of IdentityColumns for an identity of a user that is used now. It was
// created now unless it says otherwise. began: it has made its account just now.
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

// Dest is what to scan into.
func (r *UpstreamRow) Dest() []any {
	return []any{&r.u.ID, &r.u.Connector, &r.u.Subject, &r.u.UserID, &r.sid, &r.u.Linked, &r.u.Sealed, &r.scopes,
		&r.u.Version, &r.created, &r.checked, &r.due, &r.ended, &r.u.EndReason}
}

// Upstream is the record that was read.
func (r *UpstreamRow) Upstream() (storage.Upstream, error) {
	u := r.u
	scopes, err := ParseList[string](r.scopes)
	u.SessionID, u.Scopes = OptText(r.sid), oauth.Scopes(scopes)
	u.CreatedAt, u.CheckedAt = Time(r.created), OptTime(r.checked)
	u.DueAt, u.EndedAt = OptTime(r.due), OptTime(r.ended)
	return u, err
}

// Arriving is the session of an arrival, for the user who arrives.
func Arriving(a storage.Arrival, userID string) (u storage.Upstream, err error) {
	u = a.Upstream
	u.UserID = userID
	if a.Seal != nil {
		u.Sealed, err = a.Seal(userID)
	}
	return u, err
}

// UpstreamValues are the values of UpstreamColumns for a new session.
func UpstreamValues(u storage.Upstream) []any {
	return []any{
		u.ID, u.Connector, u.Subject, u.UserID, Text(u.SessionID), u.Linked, Bytes(u.Sealed), List(u.Scopes), 1,
		Millis(u.CreatedAt), OptMillis(u.CheckedAt), OptMillis(u.DueAt), nil, ""}
}

// KeyField is a field of an UpstreamKey that is not empty.
type KeyField struct {
	Column    string
	Value     any
	orUnknown bool // NULL will do
	atMost    bool // less will do
}

// Where is the condition, with the parameter that stands for the value.
func (f KeyField) Where(parameter string) string {
	switch {
	case f.orUnknown:
		return "(" + f.Column + " = " + parameter + " OR " + f.Column + " IS NULL)"
	case f.atMost:
		return f.Column + " <= " + parameter
	}
	return f.Column + " = " + parameter
}

// KeyFields are the columns that a key names. Until alone names none.
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

// OtherName is what a new user is called whose name is taken.
func OtherName(u storage.User) string { return u.Name + "-" + u.ID[max(0, len(u.ID)-6):] }
