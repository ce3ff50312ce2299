package signin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/discovery"
)

// world is an MCP server and its authorization server on one origin. Each test breaks one part.
type world struct {
	*httptest.Server
	challenge string
	prm, as   map[string]any
	register  http.HandlerFunc
	token     http.HandlerFunc
	opened    http.HandlerFunc            // answers /open and the paths below it without a token
	back      func(url.Values) url.Values // returns the authorization response for a request
	requests  []url.Values
	page      string // the page that the browser shows last

	mu   sync.Mutex // guards seen
	seen []sent
}

// sent is a request to a server of the world.
type sent struct {
	path   string
	header http.Header
	body   string
}

// record records each request before it is served.
func (w *world) record(next http.Handler) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		w.mu.Lock()
		w.seen = append(w.seen, sent{r.URL.Path, r.Header.Clone(), string(body)})
		w.mu.Unlock()
		next.ServeHTTP(rw, r)
	}
}

func (w *world) last(t *testing.T, path string) sent {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range slices.Backward(w.seen) {
		if s.path == path {
			return s
		}
	}
	t.Fatalf("no request to %s", path)
	return sent{}
}

func newWorld(t *testing.T, change func(*world)) *world {
	w := &world{}
	mux := http.NewServeMux()
	w.Server = httptest.NewServer(w.record(mux))
	t.Cleanup(w.Close)
	w.challenge = `Bearer scope="mcp", resource_metadata="` + w.URL + `/.well-known/oauth-protected-resource/mcp"`
	w.prm = map[string]any{"resource": w.URL + "/mcp", "authorization_servers": []string{w.URL}}
	w.as = map[string]any{
		"issuer": w.URL, "authorization_endpoint": w.URL + "/authorize", "token_endpoint": w.URL + "/token",
		"registration_endpoint":    w.URL + "/register",
		"response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"},
		"authorization_response_iss_parameter_supported": true,
	}
	w.opened = func(http.ResponseWriter, *http.Request) {}
	w.register = func(rw http.ResponseWriter, _ *http.Request) {
		rw.WriteHeader(http.StatusCreated)
		fmt.Fprint(rw, `{"client_id":"c1"}`)
	}
	w.token = func(rw http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(rw, `{"access_token":"t","token_type":"Bearer","expires_in":60}`)
	}
	w.back = func(q url.Values) url.Values {
		return url.Values{"code": {"code1"}, "state": {q.Get("state")}, "iss": {w.URL}}
	}
	doc := func(d *map[string]any) http.HandlerFunc {
		return func(rw http.ResponseWriter, r *http.Request) {
			if *d == nil {
				http.NotFound(rw, r)
				return
			}
			json.NewEncoder(rw).Encode(*d)
		}
	}
	mux.HandleFunc("/mcp", func(rw http.ResponseWriter, _ *http.Request) {
		if w.challenge != "" {
			rw.Header().Set("WWW-Authenticate", w.challenge)
		}
		rw.WriteHeader(http.StatusUnauthorized)
	})
	open := func(rw http.ResponseWriter, r *http.Request) { w.opened(rw, r) }
	mux.HandleFunc("/open", open)
	mux.HandleFunc("/open/", open)
	mux.HandleFunc("/.well-known/oauth-protected-resource/mcp", doc(&w.prm))
	mux.HandleFunc("/.well-known/oauth-authorization-server", doc(&w.as))
	mux.HandleFunc("/register", func(rw http.ResponseWriter, r *http.Request) { w.register(rw, r) })
	mux.HandleFunc("/token", func(rw http.ResponseWriter, r *http.Request) {
		r.ParseForm()
		w.requests = append(w.requests, r.PostForm)
		w.token(rw, r)
	})
	if change != nil {
		change(w)
	}
	return w
}

// signIn runs all steps up to the token.
func signIn(t *testing.T, w *world, mcpURL string) error {
	c := New()
	ch, err := c.Challenge(t.Context(), mcpURL)
	if err != nil {
		return err
	}
	r, err := c.Resource(t.Context(), mcpURL, ch)
	if err != nil {
		return err
	}
	s, err := c.Metadata(t.Context(), mcpURL, r)
	if err != nil {
		return err
	}
	cb, err := Listen()
	if err != nil {
		return err
	}
	defer cb.Close()
	cred, err := c.Register(t.Context(), s, cb.URI)
	if err != nil {
		return err
	}
	req, err := c.Authorize(s, cred, cb.URI, mcpURL, ch.Scope, Proof{})
	if err != nil {
		return err
	}
	u, err := url.Parse(req.URL)
	if err != nil {
		return err
	}
	w.requests = append(w.requests, u.Query())
	shown := make(chan string, 1)
	go func() {
		resp, err := http.Get(cb.URI + "?" + w.back(u.Query()).Encode())
		if err != nil {
			shown <- err.Error()
			return
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		shown <- string(body)
	}()
	_, err = c.Redeem(t.Context(), s, cred, req, cb, mcpURL)
	w.page = <-shown
	return err
}

func TestSteps(t *testing.T) {
	set := func(m map[string]any, k string, v any) { m[k] = v }
	for _, tt := range []struct {
		name   string
		change func(*world)
		step   string // "" for success
		why    string
	}{
		{"CL-02 CL-17 everything is right", nil, "", ""},
		{"CL-02 no pointer: the well-known location", func(w *world) { w.challenge = "Bearer" }, "", ""},
		{"CL-06 no document: the origin is the authorization server",
			func(w *world) { w.challenge, w.prm = "Bearer", nil }, "", ""},
		{"CL-06 no documents at all: the default endpoints", func(w *world) {
			w.challenge, w.prm, w.as = "", nil, nil
			w.back = func(q url.Values) url.Values { return url.Values{"code": {"c"}, "state": {q.Get("state")}} }
		}, "", ""},
		{"CL-01 a broken challenge", func(w *world) { w.challenge = `Bearer scope="` }, discovery.StepChallenge,
			"well-formed"},
		{"CL-02 the pointer leads nowhere", func(w *world) { w.prm = nil }, discovery.StepResource, "no document"},
		{"CL-03 the document is about another server",
			func(w *world) { set(w.prm, "resource", "https://other.example/mcp") }, discovery.StepResource,
			"not about"},
		{"CL-09 no authorization server named", func(w *world) { delete(w.prm, "authorization_servers") },
			discovery.StepMetadata, "names no authorization server"},
		{"CL-09 the first of several authorization servers", func(w *world) {
			set(w.prm, "authorization_servers", []string{w.URL, "https://second.example"})
		}, "", ""},
		{"CL-09 and no other, though its metadata is missing", func(w *world) {
			set(w.prm, "authorization_servers", []string{w.URL + "/first", w.URL})
		}, discovery.StepMetadata, "/first"},
		{"CL-04 no metadata of the named issuer", func(w *world) { w.as = nil }, discovery.StepMetadata, "no metadata"},
		{"CL-05 CL-24 SP-18 the metadata names another issuer", func(w *world) { set(w.as, "issuer", w.URL+"/") },
			discovery.StepMetadata, "names the issuer"},
		{"CL-08 no PKCE", func(w *world) { delete(w.as, "code_challenge_methods_supported") }, discovery.StepMetadata,
			"PKCE"},
		{"CL-08 plain PKCE only", func(w *world) { set(w.as, "code_challenge_methods_supported", []string{"plain"}) },
			discovery.StepMetadata, "plain"},
		{"CL-31 an endpoint in clear",
			func(w *world) { set(w.as, "authorization_endpoint", "http://auth.example/authorize") }, "",
			"neither https"},
		{"CL-13 registration is refused, with the server's words", func(w *world) {
			w.opened = func(http.ResponseWriter, *http.Request) {}
			w.register = func(rw http.ResponseWriter, _ *http.Request) {
				rw.WriteHeader(400)
				fmt.Fprint(rw, `{"error":"invalid_redirect_uri","error_description":"no loopback here"}`)
			}
		}, StepRegistration, "invalid_redirect_uri: no loopback here"},
		{"CL-10 registration is not offered", func(w *world) { delete(w.as, "registration_endpoint") },
			StepRegistration, "register themselves"},
		{"CL-23 a forged state", func(w *world) {
			w.back = func(url.Values) url.Values { return url.Values{"code": {"c"}, "state": {"x"}, "iss": {w.URL}} }
		}, StepBrowser, "state differs"},
		{"CL-24 SP-18 iss advertised and missing", func(w *world) {
			w.back = func(q url.Values) url.Values { return url.Values{"code": {"c"}, "state": {q.Get("state")}} }
		}, StepBrowser, "no iss"},
		{"CL-24 SP-18 another iss, and nothing of the answer is shown", func(w *world) {
			w.back = func(q url.Values) url.Values {
				return url.Values{"error": {"SECRET"}, "state": {q.Get("state")}, "iss": {"https://evil.example"}}
			}
		}, StepBrowser, "another issuer"},
		{"CL-24 a wrong iss also when not advertised", func(w *world) {
			delete(w.as, "authorization_response_iss_parameter_supported")
			w.back = func(q url.Values) url.Values {
				return url.Values{"code": {"c"}, "state": {q.Get("state")}, "iss": {"https://evil.example"}}
			}
		}, StepBrowser, "another issuer"},
		{"CL-24 a right iss when not advertised",
			func(w *world) { delete(w.as, "authorization_response_iss_parameter_supported") }, "", ""},
		{"the code is refused, in words of a hostile server", func(w *world) {
			w.token = func(rw http.ResponseWriter, _ *http.Request) {
				rw.WriteHeader(400)
				fmt.Fprint(rw, `{"error":"invalid_grant","error_description":"<img src=x onerror=alert(1)>"}`)
			}
		}, StepToken, "<img"},
		{"denied", func(w *world) {
			w.back = func(q url.Values) url.Values {
				return url.Values{"error": {"access_denied"}, "state": {q.Get("state")}, "iss": {w.URL}}
			}
		}, StepBrowser, "access_denied"},
		{"the code is refused", func(w *world) {
			w.token = func(rw http.ResponseWriter, _ *http.Request) {
				rw.WriteHeader(400)
				fmt.Fprint(rw, `{"error":"invalid_grant"}`)
			}
		}, StepToken, "invalid_grant"},
		{"a token of another kind", func(w *world) {
			w.token = func(rw http.ResponseWriter, _ *http.Request) {
				fmt.Fprint(rw, `{"access_token":"t","token_type":"mac"}`)
			}
		}, StepToken, `the token_type "mac", which must be Bearer`},
		{"an endless answer", func(w *world) {
			w.token = func(rw http.ResponseWriter, _ *http.Request) {
				fmt.Fprint(rw, strings.Repeat(" ", discovery.MaxBody+1))
			}
		}, StepToken, "larger than"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, tt.change)
			err := signIn(t, w, w.URL+"/mcp")
			if tt.step == "" && tt.why == "" {
				if err != nil {
					t.Fatal(err)
				}
				if !strings.Contains(w.page, "<h1>Signed in</h1>") {
					t.Errorf("the browser shows %s", w.page)
				}
				for _, q := range w.requests { // authorize and token
					if q.Get("resource") != w.URL+"/mcp" {
						t.Errorf("CL-17: a request without resource: %v", q)
					}
				}
				return
			}
			var e *discovery.Error
			if errors.As(err, &e) != (tt.step != "") || e != nil && (e.Step != tt.step || e.Advice == "") ||
				err == nil || !strings.Contains(err.Error(), tt.why) {
				t.Errorf("got %v, want step %q with %q", err, tt.step, tt.why)
			}
			if e != nil && (e.Step == StepBrowser || e.Step == StepToken) && (strings.Contains(w.page, "Signed in") ||
				!strings.Contains(w.page, "<h1>Not signed in</h1>") ||
				!strings.Contains(w.page, html.EscapeString(e.Why))) {
				t.Errorf("the browser shows %s", w.page)
			}
			if err != nil && strings.Contains(err.Error()+w.page, "SECRET") {
				t.Error("CL-24: the answer of another issuer is shown")
			}
		})
	}
	t.Run("an unprotected server", func(t *testing.T) {
		w := newWorld(t, nil)
		if err := signIn(t, w, w.URL+"/open"); err == nil || !strings.Contains(err.Error(), "not protected") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("CL-01 a server that admits initialize without a token, and asks for one to list its tools", func(t *testing.T) {
		w := newWorld(t, nil)
		var said []string
		w.opened = func(rw http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			said = append(said, r.Method+" "+r.Header.Get("Mcp-Session-Id"))
			switch {
			case strings.Contains(string(body), "initialize"):
				rw.Header().Set("Mcp-Session-Id", "s1")
			case strings.Contains(string(body), "tools/list"):
				rw.Header().Set("WWW-Authenticate", `Bearer scope="late"`)
				rw.WriteHeader(http.StatusUnauthorized)
			}
		}
		ch, err := New().Challenge(t.Context(), w.URL+"/open")
		if err != nil || ch.Status != http.StatusUnauthorized || ch.Scope.String() != "late" {
			t.Errorf("got %+v, %v", ch, err)
		}
		if got, want := strings.Join(said, ", "), "POST , POST s1, DELETE s1"; got != want {
			t.Errorf("it was sent %q, want %q", got, want)
		}
	})
	t.Run("no server", func(t *testing.T) {
		w := newWorld(t, nil)
		w.Close()
		if err := signIn(t, w, w.URL+"/mcp"); err == nil || !strings.Contains(err.Error(), "cannot be reached") {
			t.Errorf("got %v", err)
		}
	})
}

func TestCheckURL(t *testing.T) {
	for raw, good := range map[string]bool{
		"https://example.com/x": true, "http://127.0.0.1:1/x": true, "http://localhost/x": true, "http://[::1]/x": true,
		"http://example.com/x": false, "javascript:alert(1)": false, "file:///etc/passwd": false, "": false,
		"https://": false,
	} {
		t.Run("CL-31 SP-25 "+raw, func(t *testing.T) {
			if err := discovery.CheckURL(raw); (err == nil) != good {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestWaitEnds(t *testing.T) {
	cb, err := Listen()
	if err != nil {
		t.Fatal(err)
	}
	cb.Close()
	t.Run("CL-31 the listener is gone after the sign-in", func(t *testing.T) {
		c := &http.Client{Timeout: time.Second}
		if resp, err := c.Get(cb.URI); err == nil {
			resp.Body.Close()
			t.Error("it still answers")
		}
	})
}
