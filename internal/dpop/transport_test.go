package dpop

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// server checks proofs as an authorization server at /token, and as a resource elsewhere.
type server struct {
	*httptest.Server
	mu     sync.Mutex // guards the following fields
	nonce  string     // required nonce; "" for none
	proofs []*Proof
	bodies []string
}

func newServer(t *testing.T) *server {
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

func (s *server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	s.bodies = append(s.bodies, string(body))
	p, err := Check(r.Header.Values(Header), Request{
		Method:   r.Method,
		IsTarget: func(uri string) bool { return uri == s.URL+r.URL.Path },
		Token:    presented(r),
		Now:      time.Now(),
	})
	if err != nil {
		http.Error(w, err.Error(), http.StatusTeapot)
		return
	}
	s.proofs = append(s.proofs, p)
	if s.nonce == "" || p.Nonce == s.nonce {
		io.WriteString(w, "ok")
		return
	}
	w.Header().Set(NonceHeader, s.nonce)
	if r.URL.Path == "/token" {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"error":"use_dpop_nonce"}`)
		return
	}
	w.Header().Add("WWW-Authenticate", `Bearer scope="mcp"`)
	w.Header().Add("WWW-Authenticate", `DPoP error="use_dpop_nonce"`)
	w.WriteHeader(http.StatusUnauthorized)
}

// seen returns the received proofs, and forgets them.
func (s *server) seen(nonce string) (proofs []*Proof, bodies []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	proofs, bodies, s.proofs, s.bodies, s.nonce = s.proofs, s.bodies, nil, nil, nonce
	return proofs, bodies
}

func newClient(t *testing.T) *http.Client {
	t.Helper()
	s, err := Generate()
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Transport: NewTransport(s, nil)}
}

func send(t *testing.T, c *http.Client, url, token string, body io.Reader) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "POST", url, body)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "DPoP "+token)
	}
	resp, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if r.Header.Get(Header) != "" {
		t.Error("the request of the caller was changed")
	}
	return fmt.Sprint(resp.StatusCode, " ", string(b))
}

func TestTransport(t *testing.T) {
	as, rs := newServer(t), newServer(t)
	c := newClient(t)
	t.Run("CL-30 a proof at the token endpoint, with ath at the resource, a jti for each", func(t *testing.T) {
		if got := send(t, c, as.URL+"/token", "", strings.NewReader("a")); got != "200 ok" {
			t.Fatal(got)
		}
		if got := send(t, c, rs.URL+"/mcp?q=1", "tok", strings.NewReader("b")); got != "200 ok" {
			t.Fatal(got)
		}
		one, _ := as.seen("as-1")
		two, _ := rs.seen("rs-1")
		if one[0].TokenHash != "" || two[0].TokenHash != TokenHash("tok") || one[0].ID == two[0].ID {
			t.Errorf("got %+v and %+v", one[0], two[0])
		}
	})
	t.Run("CL-30 a nonce that is demanded is given, once, with the same body", func(t *testing.T) {
		for _, s := range []*server{as, rs} {
			path := map[*server]string{as: "/token", rs: "/mcp"}[s]
			if got := send(t, c, s.URL+path, "tok", strings.NewReader("body")); got != "200 ok" {
				t.Fatal(got)
			}
			proofs, bodies := s.seen(s.nonce)
			if len(proofs) != 2 || proofs[0].ID == proofs[1].ID || bodies[0] != "body" || bodies[1] != "body" {
				t.Errorf("%s: got %d proofs, bodies %q", path, len(proofs), bodies)
			}
		}
	})
	t.Run("CL-30 nonces of two origins are kept apart, and are used from then on", func(t *testing.T) {
		for range 2 {
			send(t, c, as.URL+"/token", "", strings.NewReader("x"))
			send(t, c, rs.URL+"/mcp", "tok", strings.NewReader("x"))
		}
		if p, _ := as.seen("as-2"); len(p) != 2 || p[0].Nonce != "as-1" || p[1].Nonce != "as-1" {
			t.Errorf("got %d proofs", len(p))
		}
		if p, _ := rs.seen("rs-2"); len(p) != 2 || p[0].Nonce != "rs-1" || p[1].Nonce != "rs-1" {
			t.Errorf("got %d proofs", len(p))
		}
	})
	t.Run("a body that cannot be had again is sent once, and the refusal can be read", func(t *testing.T) {
		got := send(t, c, as.URL+"/token", "", io.MultiReader(strings.NewReader("x")))
		if want := `400 {"error":"use_dpop_nonce"}`; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// TestNoEndlessNonces checks that a server that always refuses is asked only twice, and that stored
// nonces are limited.
func TestNoEndlessNonces(t *testing.T) {
	n := 0
	nonce := func() string { return fmt.Sprint("n", n) }
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n++
		w.Header().Set(NonceHeader, nonce())
		w.Header().Set("WWW-Authenticate", `DPoP error="use_dpop_nonce"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer s.Close()
	c := newClient(t)
	if send(t, c, s.URL, "tok", nil); n != 2 {
		t.Errorf("CL-30: got %d requests, want 2", n)
	}
	nonce = func() string { return strings.Repeat("n", maxNonce+1) }
	n = 0
	if send(t, c, s.URL, "tok", nil); n != 1 {
		t.Errorf("a nonce that is too long: got %d requests, want 1", n)
	}
}
