// Package bench measures the cost of the authorization server and the guard without a network: each
// operation is a request handled in process, including storage. Run it with: make bench.
package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/postgres"
	"github.com/mcp-authd/mcp-authd/internal/storage/sqlite"
	"github.com/mcp-authd/mcp-authd/internal/testkit/pgtest"
	"github.com/mcp-authd/mcp-authd/internal/trust"
	"github.com/mcp-authd/mcp-authd/oauth"
)

const (
	issuer   = "https://auth.example.com"
	resource = "https://mcp.example.com/mcp"
	redirect = "http://127.0.0.1:1/callback"
)

// rig is a server on one of the stores, with a client that acts for itself, a public client, and a
// user's live session.
type rig struct {
	http.Handler
	server  *authserver.Server
	store   storage.Store
	session storage.Hash
	user    string
	secret  string
	trust   *trust.Issuers
}

var stores = []struct {
	name string
	open func(b *testing.B) storage.Store
}{
	{"sqlite", func(b *testing.B) storage.Store {
		s, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "bench.db"), sqlite.Options{})
		if err != nil {
			b.Fatal(err)
		}
		return s
	}},
	{"postgres", func(b *testing.B) storage.Store {
		s, err := postgres.Open(b.Context(), pgtest.Start(b).Database(b), postgres.Options{})
		if err != nil {
			b.Fatal(err)
		}
		return s
	}},
}

func newRig(b *testing.B, store storage.Store) *rig {
	b.Helper()
	return newRigWith(b, store, nil, authserver.DPoPPolicy{})
}

// newRigWith is newRig with configured trusted issuers and a policy on DPoP-bound tokens.
func newRigWith(
	b *testing.B, store storage.Store, entries []storage.TrustEntry, bound authserver.DPoPPolicy,
	change ...func(*authserver.Config),
) *rig {
	b.Helper()
	b.Cleanup(func() { store.Close() })
	return newRigRecorded(b, store, entries, bound, audit.New(discarded), change...)
}

// discarded formats entries as the command does, and drops them.
var discarded = slog.New(slog.NewJSONHandler(io.Discard, nil))

// newRigRecorded is newRigWith with a recorder for its events. The caller closes the store.
func newRigRecorded(
	b *testing.B, store storage.Store, entries []storage.TrustEntry, bound authserver.DPoPPolicy,
	recorder *audit.Recorder, change ...func(*authserver.Config),
) *rig {
	b.Helper()
	ctx, now, log := context.Background(), time.Now(), discarded
	issuers, err := trust.New(trust.Options{Issuer: issuer, Entries: entries, Store: store, Now: time.Now, Log: log})
	if err != nil {
		b.Fatal(err)
	}
	c := authserver.Config{
		Issuer: issuer, Store: store, SecretKeys: [][]byte{bytes.Repeat([]byte{1}, 32)},
		Logger: log, Audit: recorder,
		DPoP: bound,
		Resources: []storage.Resource{
			{URI: resource, Name: "Bench",
				Scopes: []storage.ScopeText{{Name: "mcp", Description: "use it", Default: true}}},
		},
	}
	if entries != nil {
		c.Trust = issuers
	}
	for _, with := range change {
		with(&c)
	}
	s, err := authserver.Assemble(ctx, c)
	if err != nil {
		b.Fatal(err)
	}
	r := &rig{Handler: s.Handler(), server: s, store: store, secret: secrets.Token(""), trust: issuers}
	hash := storage.Hash(secrets.Hash(r.secret))
	u, err := s.Users().Create(ctx, "bench", "bench-password", false)
	if err != nil {
		b.Fatal(err)
	}
	r.user, r.session = u.ID, secrets.Hash("session")
	for _, err := range []error{
		store.PutSession(ctx,
			storage.Session{
				Hash: r.session, UserID: u.ID, AuthTime: now, CreatedAt: now, ExpiresAt: now.Add(time.Hour)},
			storage.SignInStart{}),
		store.PutClient(ctx,
			storage.Client{
				ID: "app", RedirectURIs: []string{redirect},
				GrantTypes: []string{"authorization_code", "refresh_token"}, AuthMethod: "none",
				Source: storage.SourceStatic, CreatedAt: now,
			}),
		store.PutClient(ctx,
			storage.Client{
				ID: "robot", GrantTypes: []string{"client_credentials"}, AuthMethod: "client_secret_basic",
				SecretHash: &hash, Resources: []string{resource}, Source: storage.SourceStatic, CreatedAt: now,
			}),
	} {
		if err != nil {
			b.Fatal(err)
		}
	}
	return r
}

func (r *rig) post(b *testing.B, path string, form url.Values, basic bool) []byte {
	return r.postProved(b, path, form, basic, "")
}

// postProved is post with a DPoP proof, if given.
func (r *rig) postProved(b *testing.B, path string, form url.Values, basic bool, proof string) []byte {
	req := httptest.NewRequest(http.MethodPost, issuer+path, strings.NewReader(form.Encode()))
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if basic {
		req.SetBasicAuth("robot", r.secret)
	}
	if proof != "" {
		req.Header.Set("DPoP", proof)
	}
	w := httptest.NewRecorder()
	r.ServeHTTP(w, req)
	if w.Code != http.StatusOK {
		b.Fatalf("%s: status %d: %s", path, w.Code, w.Body)
	}
	return w.Body.Bytes()
}

const verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"

// approve stores a grant with its code, as the consent page does. The code contains the ID of the
// grant.
func (r *rig) approve(b *testing.B) (code string) {
	id, now := secrets.ID(""), time.Now()
	code = secrets.Token("mcpac_" + id)
	err := r.store.Approve(context.Background(), storage.Approval{
		Session: r.session, Now: now,
		Grant: storage.Grant{
			ID: "grt_" + id, ClientID: "app", UserID: r.user, Scopes: oauth.Scopes{"mcp"}, Resource: resource,
			AuthTime: now, CreatedAt: now, ExpiresAt: now.Add(time.Hour),
		},
		Code: storage.Code{
			Hash: secrets.Hash(code), RedirectURI: redirect, Challenge: oauth.ChallengeS256(verifier),
			ExpiresAt: now.Add(time.Minute),
		},
	})
	if err != nil {
		b.Fatal(err)
	}
	return code
}

func (r *rig) redeem(b *testing.B, code string) oauth.TokenResponse {
	return r.redeemFor(b, "app", code)
}

func (r *rig) redeemFor(b *testing.B, client, code string) (reply oauth.TokenResponse) {
	body := r.post(b, "/token",
		url.Values{"grant_type": {"authorization_code"}, "client_id": {client}, "code": {code},
			"redirect_uri": {redirect}, "code_verifier": {verifier}}, false)
	if err := json.Unmarshal(body, &reply); err != nil {
		b.Fatal(err)
	}
	return reply
}

// BenchmarkServer measures the endpoints on both stores, one request at a time and one per
// processor at a time.
func BenchmarkServer(b *testing.B) {
	for _, s := range stores {
		b.Run("store="+s.name, func(b *testing.B) {
			r := newRig(b, s.open(b))
			b.Run("client_credentials", func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					r.post(b, "/token", url.Values{"grant_type": {"client_credentials"}}, true)
				}
			})
			b.Run("approve", func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					r.approve(b)
				}
			})
			b.Run("code_exchange", func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					b.StopTimer()
					code := r.approve(b)
					b.StartTimer()
					r.redeem(b, code)
				}
			})
			b.Run("refresh", func(b *testing.B) { r.benchRefresh(b) })
			b.Run("refresh/parallel", func(b *testing.B) {
				b.SetParallelism(16)
				b.RunParallel(func(pb *testing.PB) {
					reply := r.redeem(b, r.approve(b))
					for pb.Next() {
						reply = r.refresh(b, reply.RefreshToken)
					}
				})
			})
			b.Run("introspect", func(b *testing.B) {
				token := r.redeem(b, r.approve(b)).AccessToken
				b.ReportAllocs()
				for b.Loop() {
					r.post(b, "/introspect", url.Values{"token": {token}}, true)
				}
			})
		})
	}
}

func (r *rig) refresh(b *testing.B, token string) (reply oauth.TokenResponse) {
	body := r.post(b, "/token",
		url.Values{"grant_type": {"refresh_token"}, "client_id": {"app"}, "refresh_token": {token}}, false)
	if err := json.Unmarshal(body, &reply); err != nil {
		b.Fatal(err)
	}
	return reply
}

func (r *rig) benchRefresh(b *testing.B) {
	reply := r.redeem(b, r.approve(b))
	b.ReportAllocs()
	for b.Loop() {
		reply = r.refresh(b, reply.RefreshToken)
	}
}

// BenchmarkMetadata is the reference for requests that do not use the store.
func BenchmarkMetadata(b *testing.B) {
	r := newRig(b, stores[0].open(b))
	req := httptest.NewRequest(http.MethodGet, issuer+"/.well-known/oauth-authorization-server", nil)
	b.ReportAllocs()
	for b.Loop() {
		w := httptest.NewRecorder()
		if r.ServeHTTP(w, req); w.Code != http.StatusOK {
			b.Fatal(fmt.Errorf("status %d", w.Code))
		}
	}
}
