package column

import (
	"slices"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// The columns of the records, in the order of the rows below.
const (
	ClientColumns = "id, secret_hash, name, redirect_uris, grant_types, auth_method, jwks, jwks_uri, scopes, resources, source, metadata, created_at, last_used_at"
	UserColumns   = "id, name, password_hash, admin, disabled, created_at, last_login_at, mail, locale, role"
	GrantColumns  = "id, client_id, user_id, resource, scopes, auth_time, created_at, expires_at, revoked_at"
	GrantRead     = GrantColumns + ", status_index, upstream_id, revoked_by, paused_at, narrowed_at, for_program, methods, trust_id, asserted"
	KeyColumns    = "id, algorithm, state, public, private, created_at, activated_at, retired_at, expires_at"
)

// Statements and their beginnings that several verbs share.
const (
	InsertClient = "INSERT INTO clients (" + ClientColumns +
		") VALUES ($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12,$13,$14) ON CONFLICT DO NOTHING"
	ReadLink  = "SELECT " + LinkColumns + " FROM one_time_links WHERE "
	AddMember = `INSERT INTO group_members AS m (group_name, user_id, added_at)
SELECT g.name, u.id, CAST($3 AS bigint) FROM account_groups g, users u WHERE g.name = $1 AND u.id = $2
ON CONFLICT (group_name, user_id) DO UPDATE SET added_at = m.added_at`
	InsertKey = "INSERT INTO signing_keys (" + KeyColumns + ") "
)

// ForgottenSources lists the sources of clients that are removed when unused: clients that
// registered themselves.
const ForgottenSources = "('" + string(storage.SourceDynamic) + "', '" + string(storage.SourceCIMD) + "')"

// Abandoned is the condition for clients that replaced their registration and were not approved
// since a time, which follows. They have a row only because of the replacement. A tombstone must
// stay, so that nobody else gets an id that was given up.
const Abandoned = "source = '" + string(storage.SourceManaged) +
	"' AND deleted_at IS NULL AND last_used_at IS NULL AND coalesce(replaced_at, created_at) <= "

// Bury turns a row into a tombstone: it clears everything except the id, which stays taken.
const Bury = `secret_hash = NULL, name = '', redirect_uris = '[]', grant_types = '[]',
	jwks = NULL, jwks_uri = '', scopes = '[]', resources = '[]', metadata = NULL, deleted_at = `

// ClientReplacement sets every column that a replacement changes. It also resets the client's
// application, unless that is being cut: a client cannot escape a cut by changing its name. It is
// part of a statement that calls the new row "excluded".
const ClientReplacement = `secret_hash = excluded.secret_hash, name = excluded.name, redirect_uris = excluded.redirect_uris,
	grant_types = excluded.grant_types, auth_method = excluded.auth_method, jwks = excluded.jwks, jwks_uri = excluded.jwks_uri,
	scopes = excluded.scopes, resources = excluded.resources, source = excluded.source, metadata = excluded.metadata, replaced_at = excluded.replaced_at,
	application = CASE WHEN EXISTS (SELECT 1 FROM application_cuts k WHERE k.application = clients.application) THEN clients.application END`

// ClientRow reads ClientColumns.
type ClientRow struct {
	c                                   storage.Client
	secret                              []byte
	redirects, grants, scopes, resource string
	source                              string
	created                             int64
	used                                *int64
}

func (r *ClientRow) Dest() []any {
	return []any{&r.c.ID, &r.secret, &r.c.Name, &r.redirects, &r.grants, &r.c.AuthMethod, &r.c.JWKS, &r.c.JWKSURI,
		&r.scopes, &r.resource, &r.source, &r.c.Metadata, &r.created, &r.used}
}

func (r *ClientRow) Client() (storage.Client, error) {
	c := r.c
	var err error
	if r.secret != nil {
		h, err := Hash(r.secret)
		if err != nil {
			return c, err
		}
		c.SecretHash = &h
	}
	var scopes []string
	for _, l := range []struct {
		text string
		to   *[]string
	}{{r.redirects, &c.RedirectURIs}, {r.grants, &c.GrantTypes}, {r.scopes, &scopes}, {r.resource, &c.Resources}} {
		if *l.to, err = ParseList[string](l.text); err != nil {
			return c, err
		}
	}
	c.Scopes = scopes
	c.Source = storage.ClientSource(r.source)
	c.CreatedAt, c.LastUsedAt = Time(r.created), OptTime(r.used)
	return c, nil
}

// ClientValues returns the values of ClientColumns.
func ClientValues(c storage.Client) []any {
	var secret []byte
	if c.SecretHash != nil {
		secret = c.SecretHash[:]
	}
	return []any{
		c.ID, Bytes(secret), c.Name, List(c.RedirectURIs), List(c.GrantTypes), c.AuthMethod, Bytes(c.JWKS), c.JWKSURI,
		List(c.Scopes), List(c.Resources), string(c.Source), Bytes(c.Metadata), Millis(c.CreatedAt),
		OptMillis(c.LastUsedAt)}
}

// Bytes returns NULL for an absent blob, regardless of how the driver treats an empty slice.
func Bytes(b []byte) any {
	if len(b) == 0 {
		return nil
	}
	return b
}

// UserRow reads UserColumns.
type UserRow struct {
	u       storage.User
	admin   bool
	created int64
	login   *int64
}

func (r *UserRow) Dest() []any {
	return []any{&r.u.ID, &r.u.Name, &r.u.PasswordHash, &r.admin, &r.u.Disabled, &r.created, &r.login,
		&r.u.Mail, &r.u.Locale, &r.u.Role}
}

func (r *UserRow) User() storage.User {
	u := r.u
	u.Role = readRole(r.admin, u.Role)
	u.CreatedAt, u.LastLoginAt = Time(r.created), OptTime(r.login)
	return u
}

// UserValues returns the values of UserColumns, and then the key of the name.
func UserValues(u storage.User) []any {
	admin, role := RoleValues(u.Role)
	return []any{u.ID, u.Name, u.PasswordHash, admin, u.Disabled,
		Millis(u.CreatedAt), OptMillis(u.LastLoginAt), u.Mail, u.Locale, role, NameKey(u.Name)}
}

// SessionColumns are the columns of the session s.
const SessionColumns = "s.hash, s.user_id, s.auth_time, s.created_at, s.expires_at, s.upstream_id, " +
	"s.methods, s.proved_at, s.agent, s.address, s.seen_at"

// SessionInsert lists the same columns for an INSERT.
const SessionInsert = "hash, user_id, auth_time, created_at, expires_at, upstream_id, methods, proved_at, agent, address, seen_at"

// SessionRow reads SessionColumns.
type SessionRow struct {
	se                       storage.Session
	hash                     []byte
	auth, created, expires   int64
	proved, seen             *int64
	upstream, agent, address *string
	methods                  *string
}

func (r *SessionRow) Dest() []any {
	return []any{
		&r.hash, &r.se.UserID, &r.auth, &r.created, &r.expires, &r.upstream, &r.methods, &r.proved, &r.agent,
		&r.address, &r.seen,
	}
}

// Session returns the record that was read. It derives the columns that a replica of an earlier
// version did not write.
func (r *SessionRow) Session() (se storage.Session, err error) {
	se = r.se
	if se.Hash, err = Hash(r.hash); err != nil {
		return se, err
	}
	se.AuthTime, se.CreatedAt, se.ExpiresAt = Time(r.auth), Time(r.created), Time(r.expires)
	se.ProvedAt, se.SeenAt = se.AuthTime, se.CreatedAt
	if r.proved != nil {
		se.ProvedAt = Time(*r.proved)
	}
	if r.seen != nil {
		se.SeenAt = Time(*r.seen)
	}
	se.UpstreamID, se.Agent, se.Address = OptText(r.upstream), OptText(r.agent), OptText(r.address)
	if r.methods != nil {
		se.Methods, err = ParseList[string](*r.methods)
	}
	return se, err
}

// ReadSession reads a row of SessionRow.
func ReadSession(row interface{ Scan(dest ...any) error }) (storage.Session, error) {
	var r SessionRow
	if err := row.Scan(r.Dest()...); err != nil {
		return storage.Session{}, err
	}
	return r.Session()
}

// SessionValues returns the values of SessionInsert.
func SessionValues(se storage.Session) []any {
	return []any{
		se.Hash[:], se.UserID, Millis(se.AuthTime), Millis(se.CreatedAt), Millis(se.ExpiresAt), Text(se.UpstreamID),
		Methods(se.Methods), OptMillis(se.ProvedAt), Text(se.Agent), Text(se.Address), OptMillis(se.SeenAt),
	}
}

// Methods returns the column value for the methods of a session, NULL if they are not known.
func Methods(m []string) *string {
	if m == nil {
		return nil
	}
	text := List(m)
	return &text
}

// GrantRow reads GrantRead.
type GrantRow struct {
	g                      storage.Grant
	scopes                 string
	auth, created, expires int64
	revoked, status        *int64
	upstream, by           *string
	paused, narrowed       *int64
	methods                *string
	trust, asserted        *string
}

func (r *GrantRow) Dest() []any {
	return []any{&r.g.ID, &r.g.ClientID, &r.g.UserID, &r.g.Resource, &r.scopes,
		&r.auth, &r.created, &r.expires, &r.revoked, &r.status, &r.upstream, &r.by,
		&r.paused, &r.narrowed, &r.g.ForProgram, &r.methods, &r.trust, &r.asserted}
}

func (r *GrantRow) Grant() (storage.Grant, error) {
	g := r.g
	scopes, err := ParseList[string](r.scopes)
	g.Scopes = oauth.Scopes(scopes)
	g.AuthTime, g.CreatedAt = Time(r.auth), Time(r.created)
	g.ExpiresAt, g.RevokedAt = Time(r.expires), OptTime(r.revoked)
	if r.status != nil {
		g.StatusIndex = *r.status
	}
	g.UpstreamID, g.RevokedBy = OptText(r.upstream), storage.RevokedBy(OptText(r.by))
	g.PausedAt, g.NarrowedAt = OptTime(r.paused), OptTime(r.narrowed)
	if err == nil && r.methods != nil {
		g.Methods, err = ParseList[string](*r.methods)
	}
	g.TrustID = OptText(r.trust)
	if err == nil && r.asserted != nil {
		g.Asserted, err = parseAsserted(*r.asserted)
	}
	return g, err
}

// ConnectionRead lists the columns of the grant g that its user sees.
//
// It reads the last call by the key of each grant shown. With a join, the planner might read the
// whole table for a page of a few grants.
const ConnectionRead = GrantRead + ", given_agent, given_from, code_used_at, rotated_at, used_from" +
	", (SELECT tool FROM last_calls l WHERE l.grant_id = g.id), (SELECT called_at FROM last_calls l WHERE l.grant_id = g.id)"

// ConnectionRow reads ConnectionRead.
type ConnectionRow struct {
	grant                  GrantRow
	agent, given, usedFrom *string
	first, rotated, called *int64
	tool                   *string
}

func (r *ConnectionRow) Dest() []any {
	return append(r.grant.Dest(), &r.agent, &r.given, &r.first, &r.rotated, &r.usedFrom, &r.tool, &r.called)
}

func (r *ConnectionRow) Connection() (c storage.Connection, err error) {
	if c.Grant, err = r.grant.Grant(); err != nil {
		return c, err
	}
	c.GivenAgent, c.GivenFrom, c.UsedFrom = OptText(r.agent), OptText(r.given), OptText(r.usedFrom)
	c.FirstUsedAt, c.UsedAt = OptTime(r.first), OptTime(r.rotated)
	c.LastCall = storage.ToolCall{Tool: OptText(r.tool), At: OptTime(r.called)}
	if c.ForProgram {
		c.FirstUsedAt = time.Time{} // it had no code
		return c, nil
	}
	if c.UsedAt.IsZero() {
		c.UsedAt = c.FirstUsedAt
	}
	return c, nil
}

// ReadConnection reads a row of ConnectionRow.
func ReadConnection(row interface{ Scan(dest ...any) error }) (storage.Connection, error) {
	var r ConnectionRow
	if err := row.Scan(r.Dest()...); err != nil {
		return storage.Connection{}, err
	}
	return r.Connection()
}

// GrantValues returns the values of GrantColumns.
func GrantValues(g storage.Grant) []any {
	return []any{g.ID, g.ClientID, g.UserID, g.Resource, List(g.Scopes), Millis(g.AuthTime),
		Millis(g.CreatedAt), Millis(g.ExpiresAt), OptMillis(g.RevokedAt)}
}

// TokenRow reads whether an access token is active, with upstream_id and scopes of its grant.
type TokenRow struct {
	state            storage.TokenState
	upstream, scopes *string
}

func (r *TokenRow) Dest() []any { return []any{&r.state.Active, &r.upstream, &r.scopes} }

func (r *TokenRow) State() (storage.TokenState, error) {
	out := r.state
	out.UpstreamID = OptText(r.upstream)
	if r.scopes == nil {
		return out, nil
	}
	scopes, err := ParseList[string](*r.scopes)
	out.Scopes = scopes
	return out, err
}

// KeyRow reads KeyColumns.
type KeyRow struct {
	k                           storage.SigningKey
	state                       string
	created                     int64
	activated, retired, expires *int64
}

func (r *KeyRow) Dest() []any {
	return []any{
		&r.k.ID, &r.k.Algorithm, &r.state, &r.k.Public, &r.k.Private, &r.created, &r.activated, &r.retired, &r.expires,
	}
}

func (r *KeyRow) Key() storage.SigningKey {
	k := r.k
	k.State = storage.KeyState(r.state)
	k.CreatedAt, k.ActivatedAt = Time(r.created), OptTime(r.activated)
	k.RetiredAt, k.ExpiresAt = OptTime(r.retired), OptTime(r.expires)
	return k
}

// KeyValues returns the values of KeyColumns.
func KeyValues(k storage.SigningKey) []any {
	return []any{k.ID, k.Algorithm, string(k.State), k.Public, k.Private,
		Millis(k.CreatedAt), OptMillis(k.ActivatedAt), OptMillis(k.RetiredAt), OptMillis(k.ExpiresAt)}
}

// Consented converts the stored scopes of a consent to scopes. An empty scope marks the consent
// itself and is left out. It returns nil if no consent is stored.
func Consented(stored []string) oauth.Scopes {
	if len(stored) == 0 {
		return nil
	}
	out := make(oauth.Scopes, 0, len(stored))
	for _, s := range stored {
		if s != "" && !out.Has(s) {
			out = append(out, s)
		}
	}
	return out
}

// Consents returns the scopes that an approval stores; it is the reverse of Consented. They are
// sorted, so that two approvals cannot deadlock. It returns nil for an approval that relies on
// stored consent.
func Consents(a storage.Approval) []string {
	if a.Remembered != nil {
		return nil
	}
	return slices.Sorted(slices.Values(append([]string{""}, a.Grant.Scopes...)))
}

// Remembered returns the stored scopes that an approval relies on. All of them must exist.
func Remembered(a storage.Approval) []string {
	if a.Remembered != nil && len(a.Remembered) == 0 {
		return []string{""}
	}
	return a.Remembered
}

// NumberedColumns are the columns of a grant about its refresh tokens.
const NumberedColumns = "refresh_hash, generation, rotated_at, refresh_expires_at, rotations"

// NumberedRow reads NumberedColumns.
type NumberedRow struct {
	secret, rotations []byte
	generation        int64
	rotated, expires  *int64
}

func (r *NumberedRow) Dest() []any {
	return []any{&r.secret, &r.generation, &r.rotated, &r.expires, &r.rotations}
}

// Values returns the columns in order.
func (r *NumberedRow) Values() (secret []byte, generation int64, rotatedAt, expiresAt time.Time, rotations []byte) {
	return r.secret, r.generation, OptTime(r.rotated), OptTime(r.expires), r.rotations
}
