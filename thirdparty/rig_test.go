package thirdparty

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/mcp-authd/mcp-authd/internal/delegation"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/testkit/fakeidp"
	"github.com/mcp-authd/mcp-authd/internal/testkit/installation"
	await "github.com/mcp-authd/mcp-authd/internal/testkit/wait"
	"github.com/mcp-authd/mcp-authd/oauth"
)

const (
	issuer   = "https://auth.example.com"
	resource = "https://mcp.example.com/mcp"
)

var masterKey = bytes.Repeat([]byte{7}, secrets.KeySize)

// rig is a delegation with a real store and a fake upstream. At the end of a test, the log and the
// database must contain no token in clear. The upstream must have seen only valid requests.
type rig struct {
	*Delegation
	*installation.Installation
	t     *testing.T
	store storage.Store // the store of the installation, or another database
	up    *fakeidp.Upstream
	db    *sql.DB

	reproached bool // the test expects violations
}

func newRig(t *testing.T, edit func(*Config)) *rig {
	t.Helper()
	i := installation.New(t)
	r := &rig{Installation: i, t: t, store: i.Store, up: fakeidp.Start(t)}
	r.Set(time.Now().Truncate(time.Millisecond)) // doctor compares it with the upstream's real clock
	r.up.Behave(func(b *fakeidp.Behaviour) { b.Now = r.Now })
	var err error
	if r.db, err = sql.Open("sqlite", r.Path); err != nil {
		t.Fatal(err)
	}
	r.Delegation = r.another(r.store, edit)
	t.Cleanup(func() {
		r.Close()
		r.inspectSecrets()
		r.db.Close()
	})
	return r
}

// asked waits until the upstream gets a request at an endpoint.
func (r *rig) asked(e fakeidp.Endpoint) {
	r.t.Helper()
	await.Until(r.t, fmt.Sprintf("the upstream is asked at %v", e), func() bool { return r.up.Calls(e) > 0 })
}

// another returns a delegation with the same keys, upstream, clock and log.
func (r *rig) another(store Store, edit func(*Config)) *Delegation {
	r.t.Helper()
	c := Config{
		Issuer: issuer, Store: store, SecretKeys: [][]byte{masterKey}, Connectors: []Connector{r.connector("corp")},
		Logger: r.Logger, Audit: r.Audit, Now: r.Now,
	}
	if edit != nil {
		edit(&c)
	}
	d, err := New(c)
	if err != nil {
		r.t.Fatal(err)
	}
	return d
}

// connector returns an OpenID Connect connector for the fake upstream.
func (r *rig) connector(id string) Connector {
	return Connector{
		ID: id, Type: "oidc", Name: "Corp", ClientID: r.up.ClientID, ClientSecret: r.up.ClientSecret, Issuer: r.up.URL,
		Scopes: oauth.Scopes{"openid", "profile", "email", "offline_access"}, CheckEvery: 5 * time.Minute,
		Outage: time.Hour,
	}
}

// inspectSecrets fails if a token is in the log or, in clear, in the database.
func (r *rig) inspectSecrets() {
	dump, log := r.dump(), r.Log.String()
	for _, secret := range r.up.Secrets() {
		if strings.Contains(log, secret) {
			r.t.Errorf("AS-223: %s is in the log:\n%s", secret, log)
		}
		if strings.Contains(dump, secret) {
			r.t.Errorf("AS-223: %s is in the database in clear", secret)
		}
	}
	if v := r.up.Violations(); len(v) > 0 && !r.reproached {
		r.t.Errorf("the upstream reproaches us: %q", v)
	}
}

// dump returns the whole database as text.
func (r *rig) dump() string {
	r.t.Helper()
	ctx := context.Background()
	var out strings.Builder
	for _, table := range []string{
		"users", "identities", "upstreams", "departures", "sessions", "grants", "farewells", "handbacks",
	} {
		rows, err := r.db.QueryContext(ctx, "SELECT * FROM "+table)
		if err != nil {
			r.t.Error(err)
			return ""
		}
		columns, _ := rows.Columns()
		for rows.Next() {
			values := make([]any, len(columns))
			for i := range values {
				values[i] = new(any)
			}
			if err := rows.Scan(values...); err != nil {
				r.t.Error(err)
			}
			for i, v := range values {
				fmt.Fprintf(&out, "%s.%s=%s\n", table, columns[i], printed(*v.(*any)))
			}
		}
		rows.Close()
	}
	return out.String()
}

func printed(v any) string {
	if b, ok := v.([]byte); ok {
		return string(b)
	}
	return fmt.Sprint(v)
}

// rows counts the rows of a table.
func (r *rig) rows(table string) (n int) {
	r.t.Helper()
	if err := r.db.QueryRowContext(context.Background(), "SELECT count(*) FROM "+table).Scan(&n); err != nil {
		r.t.Fatal(err)
	}
	return n
}

// nothingMade fails unless every table that a sign-in writes is empty.
func (r *rig) nothingMade() {
	r.t.Helper()
	for _, table := range []string{"users", "identities", "upstreams", "departures", "sessions"} {
		if n := r.rows(table); n != 0 {
			r.t.Errorf("AS-223: %d rows in %s, nothing half-made may remain", n, table)
		}
	}
}

// browser is a browser at a provider.
type browser struct {
	delegation.AuthorizationRequest
	back url.Values
}

var signIn = delegation.Request{Provider: "corp", Purpose: delegation.PurposeSignIn, Payload: []byte("the request")}

// leave sends a browser to the provider and returns it with the response parameters.
func (r *rig) leave(t delegation.Request) browser {
	r.t.Helper()
	left, err := r.Depart(r.t.Context(), t)
	if err != nil {
		r.t.Fatal(err)
	}
	back, err := r.up.Visit(left.URL)
	if err != nil {
		r.t.Fatal(err)
	}
	return browser{left, back.Query()}
}

// come returns a browser from the provider.
func (r *rig) come(b browser, provider string) (delegation.Result, error) {
	return r.Return(r.t.Context(),
		delegation.AuthorizationResponse{Provider: provider, Params: b.back, Binding: b.Binding, Session: r.minted()})
}

// connect returns a browser whose user confirms that the account is theirs.
func (r *rig) connect(b browser) (delegation.Result, error) {
	r.t.Helper()
	a, err := r.come(b, "corp")
	if err != nil || a.Claim == nil {
		r.t.Fatalf("the person is not asked: %+v, %v", a, err)
	}
	return r.Claim(r.t.Context(), a.Claim.Ticket, a.Request.UserID)
}

func (r *rig) minted() storage.Session {
	now := r.Now()
	return storage.Session{
		Hash: secrets.Hash(secrets.Token("")), AuthTime: now, CreatedAt: now, ExpiresAt: now.Add(24 * time.Hour),
	}
}

// signIn signs a user in and returns them with a dependent grant.
func (r *rig) signIn(hint string) (delegation.Result, storage.Grant) {
	r.t.Helper()
	sentRequest := signIn
	sentRequest.LoginHint = hint
	b := r.leave(sentRequest)
	s := r.minted()
	a, err := r.Return(r.t.Context(),
		delegation.AuthorizationResponse{Provider: "corp", Params: b.back, Binding: b.Binding, Session: s})
	if err != nil {
		r.t.Fatal(err)
	}
	return a, r.approve(s, a.User.ID)
}

// approve creates a grant with a code.
func (r *rig) approve(s storage.Session, userID string) storage.Grant {
	r.t.Helper()
	now := r.Now()
	g := storage.Grant{
		ID: secrets.ID("grn_"), ClientID: "client", UserID: userID, Scopes: oauth.Scopes{"mcp"}, Resource: resource,
		AuthTime: now, CreatedAt: now, ExpiresAt: now.Add(90 * 24 * time.Hour),
	}
	err := r.store.Approve(r.t.Context(), storage.Approval{
		Session: s.Hash, Grant: g, Now: now,
		Client: &storage.Client{
			ID: "client", Name: "Client", AuthMethod: "none", Source: storage.SourceStatic, CreatedAt: now,
		},
		Code: storage.Code{
			Hash: secrets.Hash(secrets.Token("")), RedirectURI: "https://client.example/cb", Challenge: "c",
			ExpiresAt: now.Add(time.Minute),
		},
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return g
}

// active reports whether tokens of a grant are accepted.
func (r *rig) active(g storage.Grant) bool {
	r.t.Helper()
	got, err := r.store.TokenActive(r.t.Context(),
		storage.TokenKey{TokenID: "t", GrantID: g.ID, ClientID: g.ClientID, Now: r.Now()})
	if err != nil {
		r.t.Fatal(err)
	}
	return got.Active
}

func (r *rig) upstream(id string) storage.Upstream {
	r.t.Helper()
	u, err := r.store.Upstream(r.t.Context(), id)
	if err != nil {
		r.t.Fatal(err)
	}
	return u
}

// code returns the code of a protocol error, or "".
func code(err error) oauth.Code {
	if err == nil {
		return ""
	}
	return oauth.AsError(err).Code
}
