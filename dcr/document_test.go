package dcr

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/storage"
	"github.com/mcp-authd/mcp-authd/storage/sqlite"
)

// site serves one client metadata document; the test changes what it answers.
type site struct {
	*httptest.Server
	fetches atomic.Int32

	mu     sync.Mutex // guards answer
	answer http.HandlerFunc
}

func newSite(t *testing.T) *site {
	s := &site{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.fetches.Add(1)
		s.mu.Lock()
		answer := s.answer
		s.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *site) id() string { return s.URL + "/client.json" }

func (s *site) serve(answer http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

// say serves a document made of members, client_id first.
func (s *site) say(members string, header ...string) {
	s.serve(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		fmt.Fprintf(w, `{"client_id":%q,%s}`, s.id(), members)
	})
}

const goodDocument = `"client_name":"Doc","redirect_uris":["http://localhost/callback","https://app.example.com/cb"]`

func documentRegistry(t *testing.T, now func() time.Time) (*Registry, *sqlite.Store) {
	t.Helper()
	store, err := sqlite.Open(t.Context(), ":memory:", sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	r, err := New(Config{Store: store, SecretKeys: [][]byte{make([]byte, 32)}, Now: now, Documents: Documents{Enabled: true, InsecureLoopback: true}})
	if err != nil {
		t.Fatal(err)
	}
	return r, store
}

func TestDocument(t *testing.T) {
	s := newSite(t)
	t.Run("AS-151 AS-155 AS-156 a good document is a public client", func(t *testing.T) {
		r, _ := documentRegistry(t, nil)
		s.say(goodDocument + `,"grant_types":["authorization_code","refresh_token","urn:ietf:params:oauth:grant-type:jwt-bearer"],"unknown":1`)
		c, err := r.Client(t.Context(), s.id())
		if err != nil || !c.Public() || c.Source != storage.SourceCIMD || c.Name != "Doc" || len(c.RedirectURIs) != 2 || c.ID != s.id() {
			t.Fatalf("got %+v, %v", c, err)
		}
		if !oauth.MatchRedirectURI(c.RedirectURIs, "http://localhost:51004/callback") {
			t.Error("AS-54 a loopback entry without port does not match one with a port")
		}
	})
	t.Run("AS-164 a JSON media type with a suffix", func(t *testing.T) {
		r, _ := documentRegistry(t, nil)
		s.say(goodDocument, "Content-Type", "application/client+json; charset=utf-8")
		if _, err := r.Client(t.Context(), s.id()); err != nil {
			t.Error(err)
		}
	})
	t.Run("AS-159 private_key_jwt beside none is used as none, alone it is refused", func(t *testing.T) {
		r, _ := documentRegistry(t, nil)
		s.say(goodDocument + `,"token_endpoint_auth_method":"private_key_jwt","token_endpoint_auth_methods_supported":["none","private_key_jwt"]`)
		if c, err := r.Client(t.Context(), s.id()); err != nil || !c.Public() {
			t.Errorf("got %+v, %v", c, err)
		}
	})
	for name, members := range map[string]string{
		"AS-156 no name":                  `"redirect_uris":["https://a.example/cb"]`,
		"AS-156 no redirect URIs":         `"client_name":"x"`,
		"AS-158 a secret":                 goodDocument + `,"client_secret":"x"`,
		"AS-158 the expiry of a secret":   goodDocument + `,"client_secret_expires_at":0`,
		"AS-158 a symmetric method":       goodDocument + `,"token_endpoint_auth_method":"client_secret_basic"`,
		"AS-159 private_key_jwt alone":    goodDocument + `,"token_endpoint_auth_method":"private_key_jwt"`,
		"AS-56 a dangerous redirect URI":  `"client_name":"x","redirect_uris":["javascript:alert(1)"]`,
		"AS-155 client_id twice":          goodDocument + `,"client_id":"https://other.example/c"`,
		"AS-156 a member of another type": `"client_name":7,"redirect_uris":["https://a.example/cb"]`,
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := documentRegistry(t, nil)
			s.say(members)
			if c, err := r.Client(t.Context(), s.id()); !errors.Is(err, storage.ErrNotFound) {
				t.Errorf("got %+v, %v", c, err)
			}
		})
	}
	for name, answer := range map[string]http.HandlerFunc{
		"AS-155 another client_id": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"client_id":"https://other.example/c",`+goodDocument+`}`)
		},
		"AS-165 404":        http.NotFound,
		"AS-160 a redirect": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/other", http.StatusFound) },
		"AS-160 204":        func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusNoContent) },
		"AS-162 endless":    func(w http.ResponseWriter, r *http.Request) { w.Write([]byte(strings.Repeat(" ", 1<<20))) },
		"AS-164 HTML": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "{}")
		},
		"AS-156 not an object": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, "[]")
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := documentRegistry(t, nil)
			s.serve(answer)
			if c, err := r.Client(t.Context(), s.id()); !errors.Is(err, storage.ErrNotFound) {
				t.Errorf("got %+v, %v", c, err)
			}
		})
	}
}

func TestDocumentID(t *testing.T) {
	s := newSite(t)
	s.say(goodDocument)
	r, _ := documentRegistry(t, nil)
	for name, id := range map[string]string{
		"no path": "https://example.com", "only a slash": "https://example.com/", "a fragment": "https://example.com/c#x", "a user": "https://u@example.com/c",
		"dot segments": "https://example.com/a/../c", "http elsewhere": "http://example.com/c", "endless": "https://example.com/" + strings.Repeat("a", 3000),
	} {
		t.Run("AS-152 refused before any fetch: "+name, func(t *testing.T) {
			if _, err := r.Client(t.Context(), id); !errors.Is(err, storage.ErrNotFound) {
				t.Errorf("got %v", err)
			}
		})
	}
	if n := s.fetches.Load(); n != 0 {
		t.Errorf("%d fetches", n)
	}
	t.Run("AS-161 a private address is refused, and nothing is said about it", func(t *testing.T) {
		if _, err := r.Client(t.Context(), "https://10.0.0.1/client.json"); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("AS-151 turned off, such an id is unknown", func(t *testing.T) {
		store, err := sqlite.Open(t.Context(), ":memory:", sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		off, err := New(Config{Store: store, SecretKeys: [][]byte{make([]byte, 32)}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := off.Client(t.Context(), s.id()); !errors.Is(err, storage.ErrNotFound) || s.fetches.Load() != 0 {
			t.Errorf("got %v, %d fetches", err, s.fetches.Load())
		}
	})
}

func TestDocumentCache(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	s := newSite(t)
	r, store := documentRegistry(t, func() time.Time { return now })
	s.say(goodDocument, "Cache-Control", "private, max-age=3600")
	t.Run("AS-153 AS-163 fetched at first sight, kept as long as it says", func(t *testing.T) {
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if _, err := r.Client(t.Context(), s.id()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		now = now.Add(59 * time.Minute)
		r.Client(t.Context(), s.id())
		if n := s.fetches.Load(); n != 1 {
			t.Errorf("got %d fetches, want 1", n)
		}
		now = now.Add(2 * time.Minute)
		r.Client(t.Context(), s.id())
		if n := s.fetches.Load(); n != 2 {
			t.Errorf("got %d fetches, want 2", n)
		}
	})
	t.Run("AS-163 bounded above and below", func(t *testing.T) {
		for header, want := range map[string]time.Duration{"": documentMinTTL, "no-store": documentMinTTL, "max-age=1": documentMinTTL, "max-age=99999999999": documentMinTTL, "max-age=999999": documentMaxTTL, "max-age=-1": documentMinTTL} {
			if got := lifetime(http.Header{"Cache-Control": {header}}); got != want && !(header == "max-age=99999999999" && got == documentMaxTTL) {
				t.Errorf("%q: got %s, want %s", header, got, want)
			}
		}
	})
	t.Run("AS-163 a bad document is not kept, only not asked for in a loop", func(t *testing.T) {
		now = now.Add(25 * time.Hour)
		s.serve(http.NotFound)
		before := s.fetches.Load()
		for range 5 {
			r.Client(t.Context(), s.id())
		}
		if n := s.fetches.Load() - before; n != 1 {
			t.Errorf("got %d fetches, want 1", n)
		}
		s.say(goodDocument)
		now = now.Add(documentRetry)
		if _, err := r.Client(t.Context(), s.id()); err != nil {
			t.Error(err)
		}
	})
	t.Run("AS-165 while the site is down an approved client goes on, an unknown one waits", func(t *testing.T) {
		now = now.Add(25 * time.Hour)
		c, err := r.Client(t.Context(), s.id())
		if err != nil {
			t.Fatal(err)
		}
		s.Close()
		now = now.Add(25 * time.Hour)
		if _, err := r.Client(t.Context(), s.id()); err == nil || errors.Is(err, storage.ErrNotFound) {
			t.Errorf("unknown: got %v, want a passing failure", err)
		}
		if err := store.PutClient(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if got, err := r.Client(t.Context(), s.id()); err != nil || got.Name != "Doc" {
			t.Errorf("approved: got %+v, %v", got, err)
		}
		if err := store.DeleteClient(t.Context(), s.id(), now); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Client(t.Context(), s.id()); !errors.Is(err, storage.ErrRevoked) {
			t.Errorf("deleted: got %v", err)
		}
	})
}

func FuzzDocument(f *testing.F) {
	d := newDocuments(Documents{Enabled: true}, oauth.RedirectPolicy{}, time.Now)
	const id = "https://example.com/client.json"
	f.Add(`{"client_id":"` + id + `",` + goodDocument + `}`)
	f.Add(`{"client_id":"` + id + `"}`)
	f.Fuzz(func(t *testing.T, body string) {
		c, err := d.read(id, http.Header{"Content-Type": {"application/json"}}, []byte(body))
		if err == nil && (c.ID != id || !c.Public() || len(c.RedirectURIs) == 0 || c.Name == "" && !strings.Contains(body, "client_name")) {
			t.Errorf("%q gives %+v", body, c)
		}
	})
}
