package thirdparty

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mcp-authd/mcp-authd/internal/delegation"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/postgres"
	"github.com/mcp-authd/mcp-authd/internal/testkit/fakeidp"
	"github.com/mcp-authd/mcp-authd/internal/testkit/pgtest"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// intruder can write to the database, but has no master key.
type intruder struct {
	*rig
	evil  *fakeidp.Upstream
	edit  func(*Config)
	write func(column string, value any, id string)
}

// intrusions runs a test with SQLite and with PostgreSQL.
func intrusions(t *testing.T, name string, run func(t *testing.T, in *intruder)) {
	begin := func(t *testing.T) *intruder {
		in := &intruder{evil: fakeidp.Start(t)}
		in.edit = func(c *Config) {
			brokering(c)
			other := c.Connectors[0]
			other.ID, other.Issuer = "evil", in.evil.URL
			c.Connectors = append(c.Connectors, other)
		}
		in.rig = newRig(t, in.edit)
		in.write = func(column string, value any, id string) {
			if _, err := in.db.Exec("UPDATE upstreams SET "+column+" = ? WHERE id = ?", value, id); err != nil {
				t.Fatal(err)
			}
		}
		return in
	}
	t.Run("SQLite: "+name, func(t *testing.T) { run(t, begin(t)) })
	t.Run("PostgreSQL: "+name, func(t *testing.T) {
		in, url := begin(t), pgtest.Start(t).Database(t)
		store, err := postgres.Open(t.Context(), url, postgres.Options{MaxConns: 4})
		if err != nil {
			t.Fatal(err)
		}
		db, err := pgx.Connect(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		in.store, in.Delegation = store, in.another(store, in.edit)
		in.write = func(column string, value any, id string) {
			if _, err := db.Exec(context.Background(), "UPDATE upstreams SET "+column+" = $1 WHERE id = $2", value,
				id); err != nil {
				t.Fatal(err)
			}
		}
		t.Cleanup(func() { in.Close(); db.Close(context.Background()); store.Close() })
		run(t, in)
	})
}

// untouched fails if the other provider received a token, or a caller gets one.
func (in *intruder) untouched(t *testing.T, who ...delegation.Result) {
	t.Helper()
	in.round(t.Context())
	for _, a := range who {
		for _, provider := range []string{"corp", "evil"} {
			_, _ = in.Token(t.Context(),
				delegation.TokenRequest{
					Provider: provider, UserID: a.User.ID, UpstreamID: a.Upstream, Resource: resource,
					Scopes: oauth.Scopes{"profile"},
				})
		}
		_ = in.Check(t.Context(), a.Upstream, time.Second)
	}
	in.Close()
	for _, e := range []fakeidp.Endpoint{fakeidp.UserInfo, fakeidp.Token, fakeidp.Revoke, fakeidp.Introspect} {
		if n := in.evil.Calls(e); n != 0 {
			t.Errorf("the other provider was asked %d times: %s", n, e)
		}
	}
}

// sealedByID returns the row's content in the form of earlier versions.
func (in *intruder) sealedByID(t *testing.T, id string) []byte {
	t.Helper()
	held, err := in.open(in.upstream(id))
	if err != nil {
		t.Fatal(err)
	}
	held.Source = ""
	content, err := json.Marshal(held)
	if err != nil {
		t.Fatal(err)
	}
	var key [dataKeySize]byte
	rand.Read(key[:])
	out := envelope(in.ring.Seal(keyPurpose, key[:], []byte(id)),
		dataCipher(key[:]).Seal(nil, nil, content, []byte(id)))
	out[0] = layoutID
	return out
}

// restarted starts another process on the same store.
func (in *intruder) restarted() { in.Delegation = in.another(in.store, in.edit) }

// Security PM6, AS-223: write access to the database does not allow moving tokens.
func TestMovedRows(t *testing.T) {
	intrusions(t, "to another connector", func(t *testing.T, in *intruder) {
		a, _ := in.signIn("")
		in.Advance(6 * time.Minute)
		in.write("connector", "evil", a.Upstream)
		in.untouched(t, a)
		in.Advance(2 * time.Hour) // its access token must be renewed
		in.untouched(t, a)
	})
	intrusions(t, "to another person", func(t *testing.T, in *intruder) {
		ada, _ := in.signIn("")
		mallory, _ := in.signIn(fakeidp.Bob.Email)
		held, err := in.open(in.upstream(ada.Upstream))
		if err != nil {
			t.Fatal(err)
		}
		in.write("user_id", mallory.User.ID, ada.Upstream)
		in.write("user_id", ada.User.ID, mallory.Upstream)
		for _, prefer := range []string{ada.Upstream, ""} {
			got, err := in.Token(t.Context(),
				delegation.TokenRequest{
					Provider: "corp", UserID: mallory.User.ID, UpstreamID: prefer, Resource: resource,
					Scopes: oauth.Scopes{"profile"},
				})
			if err == nil || got.Token == held.Tokens.Access {
				t.Errorf("got the token of another person, %v", err)
			}
		}
	})
	intrusions(t, "to another subject", func(t *testing.T, in *intruder) {
		a, _ := in.signIn("")
		in.write("subject", "somebody-else", a.Upstream)
		if _, _, err := in.Permit(t.Context(), a.Upstream, resource,
			oauth.Scopes{"mcp"}); code(err) != oauth.TemporarilyUnavailable {
			t.Errorf("got %v", err)
		}
	})
}

// Security PM6: rows from earlier versions are read once, and refused afterwards.
func TestSettle(t *testing.T) {
	intrusions(t, "rows of the version before are sealed to the whole row, and go on",
		func(t *testing.T, in *intruder) {
			a, g := in.signIn("")
			in.write("sealed", in.sealedByID(t, a.Upstream), a.Upstream)
			in.restarted()
			in.Advance(6 * time.Minute)
			if err := in.Check(t.Context(), a.Upstream, 0); err != nil || !in.active(g) {
				t.Errorf("got %v", err)
			}
			if u := in.upstream(a.Upstream); byID(u.Sealed) {
				t.Error("it is in the old form")
			}
		})
	intrusions(t, "an envelope from before is not taken again, neither now nor after a restart",
		func(t *testing.T, in *intruder) {
			a, _ := in.signIn("")
			b, _ := in.signIn(fakeidp.Bob.Email)
			old := in.sealedByID(t, a.Upstream)
			in.write("sealed", old, a.Upstream)
			in.restarted()
			in.round(t.Context())
			for range 2 {
				in.write("sealed", old, a.Upstream)
				in.write("connector", "evil", a.Upstream)
				in.Advance(6 * time.Minute)
				in.untouched(t, a)
				in.write("connector", "corp", a.Upstream)
				in.write("user_id", b.User.ID, a.Upstream)
				if _, err := in.Token(t.Context(),
					delegation.TokenRequest{
						Provider: "corp", UserID: b.User.ID, UpstreamID: a.Upstream, Resource: resource,
						Scopes: oauth.Scopes{"profile"}}); err == nil {
					t.Error("another person got the token")
				}
				in.write("user_id", a.User.ID, a.Upstream)
				if _, err := in.Reseal(t.Context()); err != nil {
					t.Error(err)
				}
				if !byID(in.upstream(a.Upstream).Sealed) {
					t.Error("it was sealed again")
				}
				in.restarted()
			}
			in.Advance(2 * time.Hour)
			if err := in.Check(t.Context(), a.Upstream, 0); !errors.Is(err, storage.ErrRevoked) {
				t.Errorf("left over for longer than an outage: got %v", err)
			}
			if err := in.Check(t.Context(), b.Upstream, 0); err != nil {
				t.Errorf("another session: %v", err)
			}
		})
	intrusions(t, "another master key reseals them, too", func(t *testing.T, in *intruder) {
		a, _ := in.signIn("")
		in.write("sealed", in.sealedByID(t, a.Upstream), a.Upstream)
		newer := []byte("another master key of 32 bytes..")
		both := in.another(in.store, func(c *Config) { in.edit(c); c.SecretKeys = [][]byte{newer, masterKey} })
		if _, err := both.Reseal(t.Context()); err != nil {
			t.Fatal(err)
		}
		only := in.another(in.store, func(c *Config) { in.edit(c); c.SecretKeys = [][]byte{newer} })
		if _, _, err := only.Permit(t.Context(), a.Upstream, resource, oauth.Scopes{"mcp"}); err != nil {
			t.Errorf("the new key alone: %v", err)
		}
	})
	intrusions(t,
		"tokens do not follow a connector that is pointed at another provider, and are good when it is put back",
		func(t *testing.T, in *intruder) {
			a, g := in.signIn("")
			right := in.Delegation
			in.Delegation = in.another(in.store, func(c *Config) { in.edit(c); c.Connectors[0].Issuer = in.evil.URL })
			in.Advance(6 * time.Minute)
			if err := in.Check(t.Context(), a.Upstream, 0); !errors.Is(err, storage.ErrRevoked) {
				t.Errorf("got %v", err)
			}
			if _, _, err := in.Permit(t.Context(), a.Upstream, resource, oauth.Scopes{"mcp"}); !errors.Is(err,
				storage.ErrRevoked) {
				t.Errorf("Permit: got %v", err)
			}
			in.untouched(t, a)
			in.Delegation = right
			if err := in.Check(t.Context(), a.Upstream, 0); err != nil || !in.active(g) {
				t.Errorf("put back: %v", err)
			}
		})
}
