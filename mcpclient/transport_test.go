package mcpclient

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/dpop"
)

func post(t *testing.T, c *Client, w *world, body io.Reader) (int, string) {
	t.Helper()
	resp, err := c.HTTPClient().Post(w.URL+"/mcp", "application/json", body)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// only accepts requests with one token.
func only(authorization string) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != authorization {
			rw.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
			rw.WriteHeader(http.StatusUnauthorized)
			return
		}
		io.Copy(rw, r.Body)
	}
}

func TestUnauthorized(t *testing.T) {
	t.Run("a 401 gets one new token, and the request is repeated with its body", func(t *testing.T) {
		w := newWorld(t, func(w *world) { w.mcp = only("Bearer t2") })
		c := w.connect(t)
		var all sync.WaitGroup
		for range 16 {
			all.Go(func() {
				if status, body := post(t, c, w, strings.NewReader("call")); status != 200 || body != "call" {
					t.Errorf("got %d %q", status, body)
				}
			})
		}
		all.Wait()
		if n := len(w.seen()); n != 2 {
			t.Errorf("got %d requests for a token, want 2", n)
		}
	})
	t.Run("a server that takes no token is not a reason to ask for more and more", func(t *testing.T) {
		w := newWorld(t, func(w *world) { w.mcp = only("Bearer none") })
		c := w.connect(t)
		for range 5 {
			if status, _ := post(t, c, w, strings.NewReader("call")); status != 401 {
				t.Errorf("got %d", status)
			}
		}
		if n := len(w.seen()); n != 2 {
			t.Errorf("got %d requests for a token, want 2", n)
		}
	})
	t.Run("a body that can be read once is sent once; the next request has the new token", func(t *testing.T) {
		w := newWorld(t, func(w *world) { w.mcp = only("Bearer t2") })
		c := w.connect(t)
		if status, _ := post(t, c, w, io.MultiReader(strings.NewReader("call"))); status != 401 {
			t.Errorf("got %d", status)
		}
		if status, _ := post(t, c, w, io.MultiReader(strings.NewReader("call"))); status != 200 {
			t.Errorf("got %d", status)
		}
	})
	t.Run("the request of the caller stays as it was", func(t *testing.T) {
		w := newWorld(t, nil)
		r, err := http.NewRequestWithContext(t.Context(), "POST", w.URL+"/mcp", bytes.NewReader([]byte("x")))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := w.connect(t).RoundTrip(r)
		if err != nil || len(r.Header) != 0 {
			t.Fatalf("got %v, %v", err, r.Header)
		}
		resp.Body.Close()
	})
}

func TestStepUp(t *testing.T) {
	needs := func(scope string) func(*world) {
		return func(w *world) {
			w.mcp = func(rw http.ResponseWriter, r *http.Request) {
				w.mu.Lock()
				granted := w.forms[len(w.forms)-1].Get("scope")
				w.mu.Unlock()
				if !strings.Contains(granted, scope) {
					rw.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="`+scope+`"`)
					rw.WriteHeader(http.StatusForbidden)
					fmt.Fprint(rw, "more")
				}
			}
		}
	}
	may := func(scopes ...string) func(*Config) { return func(c *Config) { c.StepUp = scopes } }
	t.Run("CL-20 a call that needs more gets it, on top of what there was", func(t *testing.T) {
		w := newWorld(t, needs("write"))
		c := w.connect(t, may("write", "other"))
		if status, _ := post(t, c, w, strings.NewReader("call")); status != 200 {
			t.Errorf("got %d", status)
		}
		if f := w.seen(); len(f) != 2 || f[1].Get("scope") != "mcp write" {
			t.Errorf("got %v", f)
		}
	})
	t.Run("a scope that the program may not ask for is not asked for", func(t *testing.T) {
		w := newWorld(t, needs("admin"))
		c := w.connect(t, may("write"))
		if status, body := post(t, c, w, strings.NewReader("call")); status != 403 || body != "more" {
			t.Errorf("got %d %q", status, body)
		}
		if n := len(w.seen()); n != 1 {
			t.Errorf("got %d requests for a token", n)
		}
	})
	t.Run("CL-21 CL-29 refused once, it is not asked for with each call", func(t *testing.T) {
		w := newWorld(t, needs("write"))
		c := w.connect(t, may("write"))
		w.token = func(rw http.ResponseWriter, _ *http.Request) {
			rw.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(rw, `{"error":"invalid_scope"}`)
		}
		needs("never")(w)
		w.mcp = func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="write"`)
			rw.WriteHeader(http.StatusForbidden)
		}
		for range 3 {
			if status, _ := post(t, c, w, strings.NewReader("call")); status != 403 {
				t.Errorf("got %d", status)
			}
		}
		if n := len(w.seen()); n != 2 {
			t.Errorf("got %d requests for a token, want 2", n)
		}
	})
}

func TestDPoP(t *testing.T) {
	bind := func(c *Config) { c.DPoP = &DPoP{} }
	check := func(t *testing.T, w *world, h http.Header, path, token string) *dpop.Proof {
		t.Helper()
		p, err := dpop.Check(h.Values(dpop.Header), dpop.Request{
			Method: "POST", IsTarget: func(uri string) bool { return uri == w.URL+path }, Token: token, Now: time.Now(),
		})
		if err != nil {
			t.Fatalf("CL-30: %v", err)
		}
		return p
	}
	t.Run("CL-30 a proof with each request, by one key, each with its own jti", func(t *testing.T) {
		w := newWorld(t, nil)
		c := w.connect(t, bind)
		post(t, c, w, strings.NewReader("1"))
		post(t, c, w, strings.NewReader("2"))
		first := check(t, w, w.headers[0], "/token", "")
		seen := map[string]bool{first.ID: true}
		for _, h := range w.called() {
			p := check(t, w, h, "/mcp", "t1")
			if h.Get("Authorization") != "DPoP t1" || p.Thumbprint() != first.Thumbprint() || seen[p.ID] {
				t.Errorf("got %q, %+v", h.Get("Authorization"), p)
			}
			seen[p.ID] = true
		}
	})
	t.Run("CL-30 both nonces", func(t *testing.T) {
		w := newWorld(t, func(w *world) {
			nonce := func(rw http.ResponseWriter, r *http.Request, n string) bool {
				if strings.Contains(r.URL.Path, "token") {
					return len(w.forms) > 1
				}
				return len(w.called()) > 1
			}
			w.token = func(rw http.ResponseWriter, r *http.Request) {
				if !nonce(rw, r, "as") {
					rw.Header().Set(dpop.NonceHeader, "as")
					rw.WriteHeader(http.StatusBadRequest)
					fmt.Fprint(rw, `{"error":"use_dpop_nonce"}`)
					return
				}
				fmt.Fprint(rw, `{"access_token":"t","token_type":"DPoP","expires_in":900}`)
			}
			w.mcp = func(rw http.ResponseWriter, r *http.Request) {
				if !nonce(rw, r, "rs") {
					rw.Header().Set(dpop.NonceHeader, "rs")
					rw.Header().Set("WWW-Authenticate", `DPoP error="use_dpop_nonce"`)
					rw.WriteHeader(http.StatusUnauthorized)
				}
			}
		})
		c := w.connect(t, bind)
		if status, _ := post(t, c, w, strings.NewReader("x")); status != 200 {
			t.Fatalf("got %d", status)
		}
		as, rs := check(t, w, w.headers[1], "/token", ""), check(t, w, w.called()[1], "/mcp", "t")
		if as.Nonce != "as" || rs.Nonce != "rs" || len(w.seen()) != 2 {
			t.Errorf("got %q and %q", as.Nonce, rs.Nonce)
		}
	})
	t.Run("a token that is not bound is refused, unless that is allowed", func(t *testing.T) {
		w := newWorld(t, func(w *world) {
			w.token = func(rw http.ResponseWriter, _ *http.Request) {
				fmt.Fprint(rw, `{"access_token":"t","token_type":"Bearer","expires_in":900}`)
			}
		})
		if _, err := Workload(t.Context(), w.config(bind)); err == nil || !strings.Contains(err.Error(), "not bound") {
			t.Errorf("got %v", err)
		}
		c := w.connect(t, func(c *Config) { c.DPoP = &DPoP{Optional: true} })
		if status, _ := post(t, c, w, strings.NewReader("x")); status != 200 {
			t.Errorf("got %d", status)
		}
	})
	t.Run("an MCP server that demands it gets it", func(t *testing.T) {
		w := newWorld(t, func(w *world) { w.prm["dpop_bound_access_tokens_required"] = true })
		c := w.connect(t)
		post(t, c, w, strings.NewReader("x"))
		if got := w.called()[0].Get("Authorization"); got != "DPoP t1" {
			t.Errorf("got %q", got)
		}
	})
}
