package dcr

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/attempt"
	"github.com/mcp-authd/mcp-authd/internal/safehttp"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/sqlite"
	"github.com/mcp-authd/mcp-authd/internal/testkit/installation"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// site serves one client metadata document. The test sets its response.
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

// say serves a document with the given members after client_id.
func (s *site) say(members string, header ...string) {
	s.serve(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		fmt.Fprintf(w, `{"client_id":%q,%s}`, s.id(), members)
	})
}

// RFC 8037 appendix A.2
const goodJWKS = `{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"k","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}`

const goodDocument = `"client_name":"Doc","redirect_uris":["http://localhost/callback","https://app.example.com/cb"]`

func documentRegistry(t *testing.T, now func() time.Time) (*Registry, *sqlite.Store) {
	t.Helper()
	store := installation.Store(t)
	r, err := New(Config{
		Store: store, SecretKeys: [][]byte{make([]byte, 32)}, Now: now,
		Documents: Documents{Enabled: true, InsecureLoopback: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	return r, store
}

func TestDocument(t *testing.T) {
	s := newSite(t)
	t.Run("AS-151 AS-155 AS-156 a good document is a public client", func(t *testing.T) {
		r, _ := documentRegistry(t, nil)
		s.say(goodDocument +
			`,"grant_types":["authorization_code","refresh_token","urn:ietf:params:oauth:grant-type:jwt-bearer"],"unknown":1`)
		c, err := r.Fetch(t.Context(), s.id())
		if err != nil || !c.Public() || c.Source != storage.SourceCIMD || c.Name != "Doc" ||
			len(c.RedirectURIs) != 2 || c.ID != s.id() {
			t.Fatalf("got %+v, %v", c, err)
		}
		if !oauth.MatchRedirectURI(c.RedirectURIs, "http://localhost:51004/callback") {
			t.Error("AS-54 a loopback entry without port does not match one with a port")
		}
	})
	t.Run("AS-164 a JSON media type with a suffix", func(t *testing.T) {
		r, _ := documentRegistry(t, nil)
		s.say(goodDocument, "Content-Type", "application/client+json; charset=utf-8")
		if _, err := r.Fetch(t.Context(), s.id()); err != nil {
			t.Error(err)
		}
	})
	for name, tt := range map[string]struct{ members, method, keys string }{
		"AS-159 private_key_jwt with a key set": {
			`"token_endpoint_auth_method":"private_key_jwt","jwks":` + goodJWKS, "private_key_jwt", goodJWKS,
		},
		"AS-159 private_key_jwt with the place of one": {
			`"token_endpoint_auth_method":"private_key_jwt","jwks_uri":"https://app.example.com/jwks"`,
			"private_key_jwt", "https://app.example.com/jwks",
		},
		"AS-159 private_key_jwt or none: either": {
			`"token_endpoint_auth_method":"private_key_jwt","token_endpoint_auth_methods_supported":["none","private_key_jwt"],"jwks_uri":"https://app.example.com/jwks"`,
			"none", "https://app.example.com/jwks",
		},
		"AS-159 private_key_jwt or none without keys": {
			`"token_endpoint_auth_method":"private_key_jwt","token_endpoint_auth_methods_supported":["none"]`, "none",
			"",
		},
		"AS-159 an empty key set counts as absent": {
			`"token_endpoint_auth_method":"private_key_jwt","token_endpoint_auth_methods_supported":["none"],"jwks":{"keys":[]}`,
			"none", "",
		},
		"AS-159 none, with an empty key set": {
			`"token_endpoint_auth_method":"none","jwks":{"keys":[]}`, "none", "",
		},
		"AS-159 private_key_jwt or none: a key set": {
			`"token_endpoint_auth_method":"private_key_jwt","token_endpoint_auth_methods_supported":["none"],"jwks":` +
				goodJWKS, "none", goodJWKS,
		},
		"AS-158 a symmetric method beside none is not used": {
			`"token_endpoint_auth_method":"client_secret_post","token_endpoint_auth_methods_supported":["none"]`,
			"none", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := documentRegistry(t, nil)
			s.say(goodDocument + "," + tt.members)
			if c, err := r.Fetch(t.Context(), s.id()); err != nil || c.AuthMethod != tt.method ||
				string(c.JWKS)+c.JWKSURI != tt.keys {
				t.Errorf("got %+v, %v", c, err)
			}
		})
	}
	for name, members := range map[string]string{
		"AS-156 no name":                `"redirect_uris":["https://a.example/cb"]`,
		"AS-156 no redirect URIs":       `"client_name":"x"`,
		"AS-158 a secret":               goodDocument + `,"client_secret":"x"`,
		"AS-158 the expiry of a secret": goodDocument + `,"client_secret_expires_at":0`,
		"AS-158 a symmetric method":     goodDocument + `,"token_endpoint_auth_method":"client_secret_basic"`,
		"AS-159 private_key_jwt alone":  goodDocument + `,"token_endpoint_auth_method":"private_key_jwt"`,
		"AS-143 two key sets": goodDocument +
			`,"token_endpoint_auth_method":"private_key_jwt","jwks_uri":"https://app.example.com/jwks","jwks":` +
			goodJWKS,
		"AS-130 a private key": goodDocument +
			`,"token_endpoint_auth_method":"private_key_jwt","jwks":{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo","d":"nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A"}]}`,
		"AS-130 a symmetric key": goodDocument +
			`,"token_endpoint_auth_method":"private_key_jwt","jwks":{"keys":[{"kty":"oct","k":"c2VjcmV0"}]}`,
		"AS-130 an empty key set alone": goodDocument +
			`,"token_endpoint_auth_method":"private_key_jwt","jwks":{"keys":[]}`,
		"RU-20 AS-161 key set inside": goodDocument +
			`,"token_endpoint_auth_method":"private_key_jwt","jwks_uri":"https://10.0.0.1/jwks"`,
		"AS-143 key set over http": goodDocument +
			`,"token_endpoint_auth_method":"private_key_jwt","jwks_uri":"http://app.example.com/jwks"`,
		"AS-56 a dangerous redirect URI":  `"client_name":"x","redirect_uris":["javascript:alert(1)"]`,
		"AS-155 client_id twice":          goodDocument + `,"client_id":"https://other.example/c"`,
		"AS-156 a member of another type": `"client_name":7,"redirect_uris":["https://a.example/cb"]`,
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := documentRegistry(t, nil)
			s.say(members)
			if c, err := r.Fetch(t.Context(), s.id()); !errors.Is(err, storage.ErrNotFound) {
				t.Errorf("got %+v, %v", c, err)
			}
		})
	}
	for name, answer := range map[string]http.HandlerFunc{
		"AS-155 another client_id": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"client_id":"https://other.example/c",`+goodDocument+`}`)
		},
		"AS-165 404": http.NotFound,
		"AS-160 a redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/other", http.StatusFound)
		},
		"AS-160 204": func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusNoContent) },
		"AS-162 endless": func(w http.ResponseWriter, r *http.Request) {
			w.Write([]byte(strings.Repeat(" ", 1<<20)))
		},
		"AS-164 HTML": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprintf(w, `{"client_id":%q,%s}`, s.id(), goodDocument)
		},
		"AS-164 no media type": func(w http.ResponseWriter, r *http.Request) {
			w.Header()["Content-Type"] = nil
			fmt.Fprintf(w, `{"client_id":%q,%s}`, s.id(), goodDocument)
		},
		"AS-156 not an object": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, "[]")
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := documentRegistry(t, nil)
			s.serve(answer)
			c, err := r.Fetch(t.Context(), s.id())
			if !errors.Is(err, storage.ErrNotFound) ||
				strings.Contains(name, "AS-164") && !strings.Contains(err.Error(), "not served as JSON") {
				t.Errorf("got %+v, %v", c, err)
			}
			if attempt.CauseOf(err) != attempt.CauseDocument {
				t.Errorf("RU-12: the cause is %q", attempt.CauseOf(err))
			}
		})
	}
}

// SP-12, protocol 2.5: a name that resolves to an internal address, an unknown name and a server
// that is down get the same answer.
func TestDocumentOutOfReach(t *testing.T) {
	store := installation.Store(t)
	r, err := New(Config{Store: store, SecretKeys: [][]byte{make([]byte, 32)}, Documents: Documents{Enabled: true}})
	if err != nil {
		t.Fatal(err)
	}
	for name, id := range map[string]string{
		"no such name": "https://no-such-host.invalid/client.json",
	} {
		for range 2 { // the second answer must be the same
			var out unfetched
			if _, err := r.Fetch(t.Context(), id); !errors.As(err, &out) || errors.Is(err, storage.ErrNotFound) ||
				errors.As(err, new(*oauth.Error)) {
				t.Errorf("%s: got %v, want a document that cannot be fetched", name, err)
			}
		}
	}
	if err := fetchError(safehttp.ErrRefused); err != nil {
		t.Errorf("inside by name: got %v, want the answer for a name that does not exist", err)
	}
	for _, host := range []string{
		"localhost", "app.localhost", "10.0.0.1", "127.1", "169.254.169.254", "[fe80::1]", "[::ffff:10.0.0.1]",
		"[fd00::1]", "[ff02::1]", "224.0.0.1", "0x7f.1",
	} {
		t.Run("RU-20 AS-161 never permitted, with the host: "+host, func(t *testing.T) {
			id, named := "https://"+host+"/client.json", strings.Trim(host, "[]")
			for _, find := range []func(context.Context, string) (storage.Client, error){r.Fetch, r.Client} {
				_, err := find(t.Context(), id)
				if e := oauth.AsError(err); e.Code != oauth.InvalidClient || errors.Is(err, ErrUnread) ||
					!strings.Contains(e.Description, named+", which is never read from") {
					t.Errorf("got %v", err)
				}
			}
		})
	}
}

func TestDocumentID(t *testing.T) {
	s := newSite(t)
	s.say(goodDocument)
	r, _ := documentRegistry(t, nil)
	for name, tt := range map[string]struct{ id, rule string }{
		"no path":                      {"https://example.com", "has no path"},
		"only a slash":                 {"https://example.com/", "has no path"},
		"a fragment":                   {"https://example.com/c#x", "without fragment and user"},
		"a user":                       {"https://u@example.com/c", "without fragment and user"},
		"no host":                      {"https:///c", "without fragment and user"},
		"dot segments":                 {"https://example.com/a/../c", "dot segments"},
		"escaped dot segments":         {"https://example.com/a/%2e%2e/c", "dot segments"},
		"one dot":                      {"https://example.com/./c", "dot segments"},
		"a host that looks like other": {"https://сlaude.ai/c", "plain ASCII"},
		"an escaped host":              {"https://%D1%81laude.ai/c", "plain ASCII"},
		"http elsewhere":               {"http://example.com/c", "is not an https URL"},
		"endless":                      {"https://example.com/" + strings.Repeat("a", 3000), "of a document"},
	} {
		t.Run("AS-152 refused before any fetch: "+name, func(t *testing.T) {
			_, err := r.Fetch(t.Context(), tt.id)
			if !errors.Is(err, storage.ErrNotFound) || errors.Is(err, ErrUnread) ||
				!strings.Contains(err.Error(), tt.rule) {
				t.Errorf("got %v, want the rule %q", err, tt.rule)
			}
			if _, err := r.Client(t.Context(), tt.id); !errors.Is(err, storage.ErrNotFound) ||
				errors.Is(err, ErrUnread) {
				t.Errorf("a stranger's word: got %v, want a permanent refusal", err)
			}
		})
	}
	if n := s.fetches.Load(); n != 0 {
		t.Errorf("%d fetches", n)
	}
	t.Run("AS-151 turned off, such an id is unknown", func(t *testing.T) {
		store := installation.Store(t)
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
				if _, err := r.Fetch(t.Context(), s.id()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		now = now.Add(59 * time.Minute)
		if _, err := r.Client(t.Context(), s.id()); err != nil {
			t.Error(err)
		}
		if n := s.fetches.Load(); n != 1 {
			t.Errorf("got %d fetches, want 1", n)
		}
		now = now.Add(2 * time.Minute)
		r.Fetch(t.Context(), s.id())
		if n := s.fetches.Load(); n != 2 {
			t.Errorf("got %d fetches, want 2", n)
		}
	})
	t.Run("AS-163 bounded above and below", func(t *testing.T) {
		for header, want := range map[string]time.Duration{
			"": 5 * time.Minute, "no-store": time.Minute, "no-cache, max-age=9000": time.Minute,
			"max-age=1":   5 * time.Minute,
			"max-age=301": 301 * time.Second, "max-age=86399": 86399 * time.Second, "max-age=999999": 24 * time.Hour,
			"max-age=99999999999": 24 * time.Hour, "max-age=99999999999999999999": 24 * time.Hour,
			"max-age=-1": 5 * time.Minute,
		} {
			if got := lifetime(http.Header{"Cache-Control": {header}}); got != want {
				t.Errorf("%q: got %s, want %s", header, got, want)
			}
		}
	})
	t.Run("AS-163 a bad document is not kept, only not asked for in a loop", func(t *testing.T) {
		now = now.Add(25 * time.Hour)
		s.serve(http.NotFound)
		before := s.fetches.Load()
		for range 5 {
			r.Fetch(t.Context(), s.id())
		}
		if n := s.fetches.Load() - before; n != 1 {
			t.Errorf("got %d fetches, want 1", n)
		}
		s.say(goodDocument)
		now = now.Add(documentRetry)
		if _, err := r.Fetch(t.Context(), s.id()); err != nil {
			t.Error(err)
		}
	})
	t.Run("AS-165 while the site is down an approved client goes on, an unknown one waits", func(t *testing.T) {
		now = now.Add(25 * time.Hour)
		c, err := r.Fetch(t.Context(), s.id())
		if err != nil {
			t.Fatal(err)
		}
		s.Close()
		now = now.Add(25 * time.Hour)
		if _, err := r.Fetch(t.Context(), s.id()); err == nil || errors.Is(err, storage.ErrNotFound) {
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
		if _, err := r.Fetch(t.Context(), s.id()); !errors.Is(err, storage.ErrRevoked) {
			t.Errorf("deleted: got %v", err)
		}
	})
}

func TestDocumentIsReadForPeople(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	s := newSite(t)
	r, store := documentRegistry(t, func() time.Time { return now })
	s.say(goodDocument, "ETag", `"v1"`)
	if _, err := r.Client(t.Context(), s.id()); !errors.Is(err, ErrUnread) || !errors.Is(err, storage.ErrNotFound) ||
		s.fetches.Load() != 0 {
		t.Fatalf("AS-154 a stranger's word: got %v and %d fetches", err, s.fetches.Load())
	}
	c, err := r.Fetch(t.Context(), s.id())
	if err != nil || s.fetches.Load() != 1 {
		t.Fatalf("AS-153: %v, %d fetches", err, s.fetches.Load())
	}
	if _, err := r.Client(t.Context(), s.id()); err != nil || s.fetches.Load() != 1 {
		t.Errorf("AS-163 once read it is known: %v, %d fetches", err, s.fetches.Load())
	}
	t.Run("AS-163 read again on demand, not twice within seconds, and only if it has changed", func(t *testing.T) {
		s.serve(func(w http.ResponseWriter, req *http.Request) {
			if req.Header.Get("If-None-Match") != `"v1"` {
				t.Errorf("asked without the validator")
			}
			w.WriteHeader(http.StatusNotModified)
		})
		r.Fetch(t.Context(), s.id())
		now = now.Add(documentRetry)
		if got, err := r.Fetch(t.Context(), s.id()); err != nil || got.Name != "Doc" || s.fetches.Load() != 2 {
			t.Errorf("%v, %d fetches", err, s.fetches.Load())
		}
	})
	t.Run("AS-165 a server's passing failure does not end what was approved", func(t *testing.T) {
		if err := store.PutClient(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		now = now.Add(25 * time.Hour)
		for _, status := range []int{500, 503, 429} {
			s.serve(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
			now = now.Add(time.Minute)
			if got, err := r.Client(t.Context(), s.id()); err != nil || got.Name != "Doc" {
				t.Errorf("%d: got %+v, %v", status, got, err)
			}
		}
		s.serve(http.NotFound)
		now = now.Add(time.Minute)
		if _, err := r.Client(t.Context(), s.id()); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("404: got %v", err)
		}
	})
}

func TestTrust(t *testing.T) {
	p := TrustPolicy{
		Allow: []string{"claude.ai", "*.good.example", "https://chatgpt.com/oauth/*/client.json"},
		Deny:  []string{"evil.good.example", "*.bad.example", "https://github.com/x/y"},
	}
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]Trust{
		"https://claude.ai/oauth/x": TrustAllow, "https://CLAUDE.ai/x": TrustAllow,
		"https://claude.ai:8443/x": TrustAllow, "https://claude.ai./x": TrustAllow,
		"https://claude.ai.evil.example/x": TrustAsk, "https://notclaude.ai/x": TrustAsk,
		"https://x/claude.ai":      TrustAsk,
		"https://a.good.example/x": TrustAllow, "https://good.example/x": TrustAsk,
		"https://evil.good.example/x": TrustDeny, "https://EVIL.good.example./x": TrustDeny,
		"https://a.bad.example/x": TrustDeny, "https://github.com/x/y": TrustDeny, "https://github.com/x/z": TrustAsk,
		"https://chatgpt.com/oauth/a1/client.json": TrustAllow, "https://chatgpt.com/oauth/a/b/client.json": TrustAsk,
		"https://chatgpt.com/oauth/a1/client.json?x":   TrustAsk,
		"http://chatgpt.com/oauth/a1/client.json":      TrustAsk,
		"https://chatgpt.com:444/oauth/a1/client.json": TrustAsk,
	} {
		t.Run("AS-166 SP-27 "+id, func(t *testing.T) {
			if got := p.Of(id); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
	for _, id := range []string{
		"https://github.com/x/y?1", "https://github.com/x/y?", "https://GitHub.com/x/y", "https://github.com:443/x/y",
		"https://github.com./x/y", "https://github.com/x/%79", "https://github.com/%78/y", "https://github.com:444/x/y",
		"https://github.com//x/y", "https://github.com/x/y/", "HTTPS://github.com/x/y",
	} {
		t.Run("AS-166 SP-27 no other spelling of a denied URL is accepted: "+id, func(t *testing.T) {
			if got := p.Of(id); got != TrustDeny {
				t.Errorf("got %s, want %s", got, TrustDeny)
			}
		})
	}
	if got := (TrustPolicy{Others: TrustDeny}).Of("https://a.example/x"); got != TrustDeny {
		t.Errorf("AS-166 others: got %s", got)
	}
	for _, bad := range []TrustPolicy{
		{Allow: []string{"https://a.example"}}, {Deny: []string{"*"}}, {Allow: []string{"a.*.example"}},
		{Allow: []string{"a.example/x"}}, {Others: "perhaps"},
	} {
		if bad.Check() == nil {
			t.Errorf("%+v passes", bad)
		}
	}
	if err := (TrustPolicy{Allow: KnownDocuments}).Check(); err != nil {
		t.Error(err)
	}
	t.Run("AS-166 a denied place is never asked", func(t *testing.T) {
		s := newSite(t)
		s.say(goodDocument)
		r, _ := documentRegistry(t, nil)
		r.docs.cfg.Trust = TrustPolicy{Deny: []string{"127.0.0.1"}}
		if _, err := r.Fetch(t.Context(), s.id()); !errors.Is(err, storage.ErrNotFound) || s.fetches.Load() != 0 {
			t.Errorf("got %v, %d fetches", err, s.fetches.Load())
		}
	})
}

func FuzzDocument(f *testing.F) {
	d := newDocuments(Documents{Enabled: true}, oauth.RedirectPolicy{}, nil, time.Now)
	const id = "https://example.com/client.json"
	f.Add(`{"client_id":"` + id + `",` + goodDocument + `}`)
	f.Add(`{"client_id":"` + id + `"}`)
	f.Fuzz(func(t *testing.T, body string) {
		c, err := d.read(id,
			safehttp.Answer{Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(body)})
		if err == nil &&
			(c.ID != id || !c.Public() || len(c.RedirectURIs) == 0 ||
				c.Name == "" && !strings.Contains(body, "client_name")) {
			t.Errorf("%q gives %+v", body, c)
		}
	})
}

// Mutation 19: a key set is bounded when it is read. A set with a public and a symmetric key is
// refused as a whole.
func TestKeySetBounds(t *testing.T) {
	long := `{"keys":[],"x":"` + strings.Repeat("x", maxJWKS) + `"}`
	_, err := clientKeys.Parse([]byte(long))
	if err == nil || !strings.Contains(err.Error(), "larger than 8192 bytes") {
		t.Errorf("AS-130: got %v", err)
	}
	mixed := strings.Replace(goodJWKS, `]}`, `,{"kty":"oct","k":"c2VjcmV0"}]}`, 1)
	if keys, err := clientKeys.Parse([]byte(mixed)); err == nil ||
		!strings.Contains(err.Error(), "a private or a symmetric key") {
		t.Errorf("AS-130: got %d keys, %v", len(keys), err)
	}
	_, err = parseRequest([]byte(`{"jwks":{"keys":[],"x":"` + strings.Repeat("x", maxJWKS) + `"}}`))
	if err == nil || !strings.Contains(err.Error(), "jwks is longer than 8192 bytes") {
		t.Errorf("AS-143: got %v", err)
	}
}

// The row replaces an unavailable document. It must not restore data that the document has dropped,
// such as a redirect URI that another party may own by now.
func TestARowStandsInForTheDocumentAsItWasLastRead(t *testing.T) {
	now := time.Now()
	s := newSite(t)
	s.say(goodDocument)
	r, store := documentRegistry(t, func() time.Time { return now })
	first, err := r.Fetch(t.Context(), s.id())
	if err == nil {
		err = store.PutClient(t.Context(), first) // as the first approval does
	}
	if err != nil {
		t.Fatal(err)
	}
	s.say(`"client_name":"Doc","redirect_uris":["https://new.example.com/cb"]`)
	now = now.Add(documentMaxTTL)
	if _, err := r.Client(t.Context(), s.id()); err != nil {
		t.Fatal(err)
	}
	s.serve(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	now = now.Add(documentMaxTTL)
	c, err := r.Client(t.Context(), s.id())
	if err != nil || !slices.Equal(c.RedirectURIs, []string{"https://new.example.com/cb"}) {
		t.Errorf("while it is down: got %q, %v; want the redirect URI of the document as it was read last",
			c.RedirectURIs, err)
	}
}
