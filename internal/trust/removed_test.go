package trust_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/postgres"
	"github.com/mcp-authd/mcp-authd/internal/storage/sqlite"
	"github.com/mcp-authd/mcp-authd/internal/testkit/pgtest"
	"github.com/mcp-authd/mcp-authd/internal/trust"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// TestEndRemoved: AS-232. Removing an entry from the configuration revokes its grants.
func TestEndRemoved(t *testing.T) {
	t.Run("SQLite", func(t *testing.T) {
		s, err := sqlite.Open(t.Context(), sqlite.Memory, sqlite.Options{})
		testRemoved(t, s, err)
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		s, err := postgres.Open(t.Context(), pgtest.Start(t).Database(t), postgres.Options{Timeout: time.Minute})
		testRemoved(t, s, err)
	})
}

// removal starts servers with entries, and checks the grants of the entries.
type removal struct {
	s   storage.Store
	now time.Time
}

func configuredEntry(id, issuer string) storage.TrustEntry {
	return storage.TrustEntry{
		ID: id, Kind: storage.TrustEnterprise, Issuer: issuer, Config: true,
		TrustRules: storage.TrustRules{JWKSURL: issuer + "/keys"},
	}
}

// start starts a server with entries, and checks which removed entries it reports.
func (r *removal) start(t *testing.T, want []string, entries ...storage.TrustEntry) {
	t.Helper()
	r.now = r.now.Add(time.Minute)
	got, err := trust.EndRemoved(t.Context(), r.s, entries, r.now)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
}

// grant creates a grant from an assertion of an entry.
func (r *removal) grant(t *testing.T, entry string) storage.Grant {
	t.Helper()
	r.now = r.now.Add(time.Second) // an assertion issued at the time of a revocation is refused
	id := secrets.ID("usr_")
	out, err := r.s.GrantAssertion(t.Context(), storage.AssertionGrant{
		SpendID: secrets.ID("jti"), SpentUntil: r.now.Add(time.Minute), IssuedAt: r.now, Configured: true,
		Person: &storage.AssertedPerson{
			Issuer: "https://acme.example", Subject: id, NewUser: &storage.User{ID: id, Name: id, CreatedAt: r.now},
		},
		Grant: storage.Grant{
			ID: secrets.ID("gr_"), ClientID: "c", Scopes: oauth.Scopes{"mcp"}, Resource: "https://mcp.example/mcp",
			AuthTime: r.now, CreatedAt: r.now, ExpiresAt: r.now.Add(72 * time.Hour), TrustID: entry,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.Grant
}

func (r *removal) wantLive(t *testing.T, g storage.Grant, want bool) {
	t.Helper()
	got, err := r.s.TokenActive(t.Context(),
		storage.TokenKey{TokenID: "t", GrantID: g.ID, ClientID: g.ClientID, Now: r.now})
	if err != nil || got.Active != want {
		t.Errorf("live: got %v, %v, want %v", got.Active, err, want)
	}
}

// forgetful fails to remember, like a server that is killed after the revocation.
type forgetful struct{ storage.Store }

func (f forgetful) Remember(ctx context.Context, name string, value []byte) ([]byte, error) {
	if value != nil {
		return nil, context.Canceled
	}
	return f.Store.Remember(ctx, name, value)
}

func testRemoved(t *testing.T, s storage.Store, err error) {
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r := &removal{s, time.Unix(1_790_000_000, 0)}
	acme, other := configuredEntry("acme", "https://acme.example"), configuredEntry("other", "https://other.example")
	r.start(t, nil)
	r.start(t, nil, acme, other)
	first, rest := r.grant(t, "acme"), r.grant(t, "other")
	t.Run("AS-232 starts with the same entries end nothing", func(t *testing.T) {
		r.start(t, nil, other, acme)
		r.wantLive(t, first, true)
	})
	t.Run("AS-232 a start that fails after the cut is made up for", func(t *testing.T) {
		late := r.grant(t, "acme")
		if _, err := trust.EndRemoved(t.Context(), forgetful{s}, []storage.TrustEntry{other}, r.now); err == nil {
			t.Error("got no error")
		}
		r.start(t, []string{"acme"}, other)
		r.wantLive(t, first, false)
		r.wantLive(t, late, false)
		r.wantLive(t, rest, true)
	})
	t.Run("AS-232 a server with the earlier configuration runs on: each start without the entry cuts", func(t *testing.T) {
		meanwhile := r.grant(t, "acme")
		r.wantLive(t, meanwhile, true)
		r.start(t, nil, other)
		r.wantLive(t, meanwhile, false)
		r.now = r.now.Add(25 * time.Hour)
		r.start(t, nil, other)
	})
	t.Run("AS-232 an entry that is back starts with nothing, and is cut once more when it goes", func(t *testing.T) {
		r.start(t, nil, acme, other)
		r.wantLive(t, first, false)
		again := r.grant(t, "acme")
		r.start(t, nil, acme, other)
		r.wantLive(t, again, true)
		r.start(t, []string{"acme"}, other)
		r.wantLive(t, again, false)
	})
	t.Run("AS-232 an id that the store has now is its own", func(t *testing.T) {
		e := acme
		e.Config, e.CreatedAt = false, r.now
		if err := s.AddTrust(t.Context(), e); err != nil {
			t.Fatal(err)
		}
		stored := r.grant(t, "acme")
		r.start(t, nil, other)
		r.wantLive(t, stored, true)
	})
	t.Run("AS-230 an id that is another issuer's now ends what rested on the first", func(t *testing.T) {
		r.start(t, []string{"other"}, configuredEntry("other", "https://third.example"))
		r.wantLive(t, rest, false)
		r.start(t, nil, configuredEntry("other", "https://third.example"))
	})
}
