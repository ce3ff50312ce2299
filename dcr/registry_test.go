package dcr_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/dcr"
	"github.com/mcp-authd/mcp-authd/internal/audit"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/testkit/audittest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/installation"
	"github.com/mcp-authd/mcp-authd/internal/testkit/logtest"
	"github.com/mcp-authd/mcp-authd/oauth"
)

var (
	master  = bytes.Repeat([]byte("k"), 32)
	master2 = bytes.Repeat([]byte("n"), 32)
	epoch   = time.Date(2026, 7, 28, 12, 0, 0, 0, time.UTC)
)

// rig is a registry with a clock that tests can move, and a log that they can read.
type rig struct {
	*dcr.Registry
	store *clients
	log   *logtest.Buffer
	mu    sync.Mutex
	now   time.Time
}

func (r *rig) clock() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

func (r *rig) pass(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = r.now.Add(d)
}

func newRig(t testing.TB, edit ...func(*dcr.Config)) *rig {
	t.Helper()
	r := &rig{store: newClients(t), log: &logtest.Buffer{}, now: epoch}
	log := slog.New(slog.NewJSONHandler(r.log, nil))
	t.Cleanup(func() { audittest.Read(t).Check(t, r.log.String()) })
	c := dcr.Config{Store: r.store, SecretKeys: [][]byte{master}, Audit: audit.New(log), Logger: log, Now: r.clock}
	for _, e := range edit {
		e(&c)
	}
	var err error
	if r.Registry, err = dcr.New(c); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *rig) send(method, body string, header ...string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(method, "/register", strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	r.ServeHTTP(w, req)
	return w
}

// register sends a body that must be accepted and returns the members of the response.
func (r *rig) register(t testing.TB, body string) map[string]any {
	t.Helper()
	w := r.send("POST", body)
	if w.Code != http.StatusCreated {
		t.Fatalf("got %d %s, want 201", w.Code, w.Body)
	}
	return decode(t, w.Body.Bytes())
}

func decode(t testing.TB, body []byte) map[string]any {
	t.Helper()
	var out map[string]any
	if err := json.Unmarshal(body, &out); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return out
}

func texts(v any) (out []string) {
	l, _ := v.([]any)
	for _, e := range l {
		out = append(out, e.(string))
	}
	return out
}

const loopback = `"redirect_uris":["http://127.0.0.1:8080/callback"]`

func TestEveryKnownClientRegisters(t *testing.T) {
	var zoo []struct {
		Client string
		Body   json.RawMessage
	}
	readJSON(t, "testdata/clients.json", &zoo)
	plain := regexp.MustCompile(`^[A-Za-z0-9._-]{1,499}$`)
	for _, z := range zoo {
		t.Run("AS-131 AS-132 AS-133 AS-134: "+z.Client, func(t *testing.T) {
			r := newRig(t)
			asked := decode(t, z.Body)
			got := r.register(t, string(z.Body))
			id, _ := got["client_id"].(string)
			if !plain.MatchString(id) {
				t.Errorf("AS-146: client_id %q", id)
			}
			for _, member := range []string{
				"redirect_uris", "client_name", "client_uri", "application_type", "software_id", "software_version",
			} {
				if !equalJSON(asked[member], got[member]) {
					t.Errorf("%s: got %v, want %v", member, got[member], asked[member])
				}
			}
			method, _ := asked["token_endpoint_auth_method"].(string)
			if method == "" {
				method = "none"
			}
			if got["token_endpoint_auth_method"] != method {
				t.Errorf("token_endpoint_auth_method: got %v, want %s", got["token_endpoint_auth_method"], method)
			}
			grants := []string{"authorization_code", "refresh_token"}
			if slices.Contains(texts(asked["grant_types"]), oauth.GrantDeviceCode) { // AS-240: Visual Studio Code
				grants = append(grants, oauth.GrantDeviceCode)
			}
			if g := texts(got["grant_types"]); !slices.Equal(g, grants) {
				t.Errorf("grant_types: got %v, want %v", g, grants)
			}
			secret, confidential := got["client_secret"].(string)
			if _, expires := got["client_secret_expires_at"]; confidential == (method == "none") ||
				expires != confidential {
				t.Errorf("method %s: secret %v, client_secret_expires_at %v", method, confidential, expires)
			}
			if r.store.size(t) != 0 {
				t.Error("registration stored a row")
			}

			// Another server with an empty store and the same key.
			c, err := newRig(t).Client(t.Context(), id)
			if err != nil {
				t.Fatalf("the id does not open after the database was lost: %v", err)
			}
			if !slices.Equal(c.RedirectURIs, texts(asked["redirect_uris"])) || c.AuthMethod != method ||
				c.Source != storage.SourceDynamic || !c.CreatedAt.Equal(epoch) {
				t.Errorf("resolved: got %+v", c)
			}
			if confidential && (c.SecretHash == nil || *c.SecretHash != storage.Hash(secrets.Hash(secret))) {
				t.Error("the secret does not survive a lost database")
			}
			if !confidential && c.SecretHash != nil {
				t.Error("a public client has a secret")
			}
		})
	}
}

func equalJSON(a, b any) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return bytes.Equal(x, y)
}

func TestSealedIDs(t *testing.T) {
	full := `{` + loopback + `,"client_name":"Ann","scope":"mcp","token_endpoint_auth_method":"client_secret_post",
		"client_uri":"https://a.example/?x=1&y=2","software_id":"s","application_type":"native"}`
	t.Run("what was registered is what is resolved", func(t *testing.T) {
		r := newRig(t)
		got := r.register(t, full)
		c, err := r.Client(t.Context(), got["client_id"].(string))
		if err != nil {
			t.Fatal(err)
		}
		var m dcr.Metadata
		if err := json.Unmarshal(c.Metadata, &m); err != nil {
			t.Fatal(err)
		}
		want := dcr.Metadata{ClientURI: "https://a.example/?x=1&y=2", SoftwareID: "s", ApplicationType: "native"}
		if !equalJSON(m, want) || c.Name != "Ann" || c.Scopes.String() != "mcp" {
			t.Errorf("got %+v with %+v", c, m)
		}
	})
	t.Run("AS-146 RFC 7591 3.2.1: equal metadata, different ids", func(t *testing.T) {
		r := newRig(t)
		if a, b := r.register(t, full), r.register(t, full); a["client_id"] == b["client_id"] ||
			a["client_secret"] == b["client_secret"] {
			t.Error("two registrations share an id or a secret")
		}
	})
	t.Run("an older master key still opens, with the same secret", func(t *testing.T) {
		got := newRig(t).register(t, full)
		rotated := newRig(t, func(c *dcr.Config) { c.SecretKeys = [][]byte{master2, master} })
		c, err := rotated.Client(t.Context(), got["client_id"].(string))
		if err != nil || *c.SecretHash != storage.Hash(secrets.Hash(got["client_secret"].(string))) {
			t.Errorf("got %+v, %v", c, err)
		}
	})
	t.Run("another master key does not open", func(t *testing.T) {
		got := newRig(t).register(t, full)
		other := newRig(t, func(c *dcr.Config) { c.SecretKeys = [][]byte{master2} })
		if _, err := other.Client(t.Context(), got["client_id"].(string)); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("got %v, want ErrNotFound", err)
		}
	})
	t.Run("no character of an id can be changed", func(t *testing.T) {
		r := newRig(t)
		id := r.register(t, full)["client_id"].(string)
		for i := range id {
			for _, c := range []byte("Ab_") {
				if id[i] == c {
					continue
				}
				forged := id[:i] + string(c) + id[i+1:]
				if _, err := r.Client(t.Context(), forged); !errors.Is(err, storage.ErrNotFound) {
					t.Fatalf("character %d: got %v, want ErrNotFound", i, err)
				}
			}
		}
		for _, forged := range []string{
			id + "\n", id[:9] + "\r\n" + id[9:], id + "=", id + "A", id[:len(id)-1], "mcp_", "mcp_AAAA", "",
			strings.Repeat("a", 600),
		} {
			if _, err := r.Client(t.Context(), forged); !errors.Is(err, storage.ErrNotFound) {
				t.Errorf("%q: got %v, want ErrNotFound", forged, err)
			}
		}
	})
	t.Run("a client has one id only, whatever the length of its last group", func(t *testing.T) {
		r := newRig(t)
		for _, name := range []string{"a", "aa", "aaa"} {
			id := r.register(t, `{`+loopback+`,"client_name":"`+name+`"}`)["client_id"].(string)
			for c := range strings.SplitSeq("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", "") {
				other := id[:len(id)-1] + c
				if _, err := r.Client(t.Context(), other); other != id && !errors.Is(err, storage.ErrNotFound) {
					t.Errorf("last character %s for %s: got %v, want ErrNotFound", c, id[len(id)-1:], err)
				}
			}
		}
	})
	t.Run("a deleted client stays deleted", func(t *testing.T) {
		r := newRig(t)
		id := r.register(t, full)["client_id"].(string)
		if err := r.store.DeleteClient(t.Context(), id, epoch); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Client(t.Context(), id); !errors.Is(err, storage.ErrRevoked) {
			t.Errorf("got %v, want ErrRevoked", err)
		}
	})
	t.Run("a failing store is neither unknown nor known", func(t *testing.T) {
		r := newRig(t)
		id := r.register(t, full)["client_id"].(string)
		r.store.fail(errors.New("disk on fire"))
		if _, err := r.Client(t.Context(), id); err == nil || errors.Is(err, storage.ErrNotFound) {
			t.Errorf("got %v, want the store's error", err)
		}
	})
	t.Run("what does not fit into 499 characters gets a row", func(t *testing.T) {
		for _, method := range []string{"none", "client_secret_basic"} {
			r := newRig(t)
			long := "https://app.example/" + strings.Repeat("x", 600)
			got := r.register(t, `{"redirect_uris":["`+long+`"],"token_endpoint_auth_method":"`+method+`"}`)
			id := got["client_id"].(string)
			if len(id) > 64 || r.store.size(t) != 1 {
				t.Errorf("id of %d characters, %d rows", len(id), r.store.size(t))
			}
			c, err := r.Client(t.Context(), id)
			if err != nil || c.RedirectURIs[0] != long {
				t.Fatalf("got %+v, %v", c, err)
			}
			if secret, ok := got["client_secret"].(string); ok != (method != "none") ||
				ok && *c.SecretHash != storage.Hash(secrets.Hash(secret)) {
				t.Errorf("%s: secret %q does not fit", method, secret)
			}
		}
	})
	t.Run("a stored row goes before the sealed id", func(t *testing.T) {
		r := newRig(t)
		id := r.register(t, full)["client_id"].(string)
		if err := r.store.PutClient(t.Context(),
			storage.Client{
				ID: id, Name: "stored", AuthMethod: "none", Source: storage.SourceDynamic,
				CreatedAt: epoch}); err != nil {
			t.Fatal(err)
		}
		if c, err := r.Client(t.Context(), id); err != nil || c.Name != "stored" {
			t.Errorf("got %+v, %v", c, err)
		}
	})
	t.Run("ids of the operator resolve", func(t *testing.T) {
		r := newRig(t)
		if err := r.store.PutClient(t.Context(),
			storage.Client{ID: "ci", AuthMethod: "none", Source: storage.SourceStatic, CreatedAt: epoch}); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Client(t.Context(), "ci"); err != nil {
			t.Error(err)
		}
	})
}

func TestClientCache(t *testing.T) {
	r := newRig(t)
	id := r.register(t, `{`+loopback+`}`)["client_id"].(string)
	look := func() error { _, err := r.Client(t.Context(), id); return err }
	for range 5 {
		if err := look(); err != nil {
			t.Fatal(err)
		}
	}
	if r.store.reads != 1 {
		t.Errorf("five lookups made %d reads, want 1", r.store.reads)
	}
	r.store.DeleteClient(t.Context(), id, epoch)
	r.pass(5 * time.Second)
	if err := look(); !errors.Is(err, storage.ErrRevoked) {
		t.Errorf("after five seconds: got %v, want ErrRevoked", err)
	}

	id = r.register(t, `{`+loopback+`}`)["client_id"].(string)
	look()
	r.store.DeleteClient(t.Context(), id, epoch)
	r.Forget(id)
	if err := look(); !errors.Is(err, storage.ErrRevoked) {
		t.Errorf("after Forget: got %v, want ErrRevoked", err)
	}

	t.Run("an unknown id is looked up each time", func(t *testing.T) {
		if _, err := r.Client(t.Context(), "later"); !errors.Is(err, storage.ErrNotFound) {
			t.Fatal(err)
		}
		r.store.PutClient(t.Context(),
			storage.Client{ID: "later", AuthMethod: "none", Source: storage.SourceStatic, CreatedAt: epoch})
		if _, err := r.Client(t.Context(), "later"); err != nil {
			t.Error(err)
		}
	})
}

func TestNew(t *testing.T) {
	for name, c := range map[string]dcr.Config{
		"no store":      {SecretKeys: [][]byte{master}},
		"no key":        {Store: newClients(t)},
		"short key":     {Store: newClients(t), SecretKeys: [][]byte{master[:31]}},
		"short old key": {Store: newClients(t), SecretKeys: [][]byte{master, master[:31]}},
	} {
		if _, err := dcr.New(c); err == nil {
			t.Errorf("%s: got a registry", name)
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	r := newRig(t, func(c *dcr.Config) { c.Limits = dcr.Limits{PerMinute: 1e6, Burst: 1e6} })
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				w := r.send("POST", `{`+loopback+`}`)
				id, _ := decode(t, w.Body.Bytes())["client_id"].(string)
				if _, err := r.Client(t.Context(), id); err != nil {
					t.Error(err)
				}
				r.Forget(id)
			}
		})
	}
	wg.Wait()
}

// clients is a real store that counts reads and can be made to fail.
type clients struct {
	storage.Clients
	mu    sync.Mutex // guards reads and err
	reads int
	err   error
}

func newClients(t testing.TB) *clients {
	t.Helper()
	s := installation.Store(t)
	return &clients{Clients: s}
}

func (s *clients) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

func (s *clients) size(t testing.TB) int {
	t.Helper()
	rows, err := s.ListClients(t.Context(), "", 100)
	if err != nil {
		t.Fatal(err)
	}
	return len(rows)
}

func (s *clients) PutClient(ctx context.Context, c storage.Client) error {
	s.mu.Lock()
	err := s.err
	s.mu.Unlock()
	if err != nil {
		return err
	}
	return s.Clients.PutClient(ctx, c)
}

func (s *clients) Client(ctx context.Context, id string) (storage.Client, error) {
	s.mu.Lock()
	s.reads++
	err := s.err
	s.mu.Unlock()
	if err != nil {
		return storage.Client{}, err
	}
	return s.Clients.Client(ctx, id)
}
