package mcpresource

import (
	"bytes"
	"compress/zlib"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

const maxLists = 64 // kept at once; see package statuslist

// pack returns the lst member of a status list.
func pack(b []byte) string {
	var out bytes.Buffer
	z := zlib.NewWriter(&out)
	z.Write(b)
	z.Close()
	return base64.RawURLEncoding.EncodeToString(out.Bytes())
}

// listServer is an authorization server with status lists. It needs no network, so the tests can
// use a fake clock.
type listServer struct {
	*signerServer
	t             testing.TB
	polls, bodies atomic.Int32
	down          atomic.Bool
	slow          time.Duration

	mu      sync.Mutex // guards the fields below
	bits    []byte
	version int
	change  []any // of the claims
	sign    func(claims map[string]any) string
	asked   []http.Header
}

func newListServer(t testing.TB, s *signerServer) *listServer {
	return &listServer{signerServer: s, t: t, bits: make([]byte, 16)}
}

// RoundTrip implements http.RoundTripper.
func (s *listServer) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	if !strings.HasPrefix(r.URL.Path, "/status/") {
		s.Config.Handler.ServeHTTP(w, r)
		return w.Result(), nil
	}
	s.polls.Add(1)
	if s.slow > 0 {
		select {
		case <-time.After(s.slow):
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	if s.down.Load() {
		return nil, errors.New("dial tcp 10.0.0.7:443: connection refused")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, r.Header)
	tag := fmt.Sprintf(`"%d"`, s.version)
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return w.Result(), nil
	}
	s.bodies.Add(1)
	claims := map[string]any{
		"sub": s.URL + r.URL.Path, "iss": s.URL, "iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix(),
		"ttl":         15,
		"status_list": map[string]any{"bits": 1, "lst": pack(s.bits)},
	}
	for i := 0; i+1 < len(s.change); i += 2 { // in pairs; nil removes a claim
		if claims[s.change[i].(string)] = s.change[i+1]; s.change[i+1] == nil {
			delete(claims, s.change[i].(string))
		}
	}
	w.Header().Set("ETag", tag)
	w.Header().Set("Content-Type", "application/statuslist+jwt")
	if s.sign == nil {
		s.sign = func(c map[string]any) string { return s.token(s.t, "ES256", nil, c, "typ", "statuslist+jwt") }
	}
	w.WriteString(s.sign(claims))
	return w.Result(), nil
}

// set sets or clears the bit of an index.
func (s *listServer) set(index int, revoked bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	s.bits[index/8] &^= 1 << (index % 8)
	if revoked {
		s.bits[index/8] |= 1 << (index % 8)
	}
}

func (s *listServer) place(index any, list string) map[string]any {
	return map[string]any{"status_list": map[string]any{"idx": index, "uri": s.URL + "/status/" + list}}
}

// with signs a token with an entry in list 0.
func (s *listServer) with(t testing.TB, index any) string {
	return s.token(t, "ES256", nil,
		s.claims("status", s.place(index, "0"), "exp", time.Now().Add(100*time.Hour).Unix()))
}

func (s *listServer) validator(t testing.TB, change ...func(*JWTConfig)) Validator {
	t.Helper()
	c := JWTConfig{Issuer: s.URL, HTTPClient: &http.Client{Transport: s}}
	for _, f := range change {
		f(&c)
	}
	v, err := NewJWTValidator(c)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// expect validates a token and compares the error, which must be exactly one of the two.
func expect(t *testing.T, v Validator, token string, want error) {
	t.Helper()
	p, err := validate(v, token)
	if !errors.Is(err, want) || (p == nil) != (want != nil) ||
		errors.Is(err, ErrInvalidToken) && errors.Is(err, ErrUnavailable) {
		t.Errorf("got %v, want %v", err, want)
	}
}

func TestStatusClaim(t *testing.T) {
	s := newListServer(t, newSignerServer(t))
	s.set(5, true)
	signed := func(status any) string {
		return s.token(t, "ES256", nil, s.claims("status", status, "iat", time.Now().Add(-time.Minute).Unix()))
	}
	at := func(uri any) any {
		return map[string]any{"status_list": map[string]any{"idx": 0, "uri": uri}}
	}
	v, strict := s.validator(t), s.validator(t, func(c *JWTConfig) { c.RequireStatus = true })
	for name, tt := range map[string]struct {
		status any
		want   error
	}{
		"valid":                             {s.place(4, "0"), nil},
		"not valid":                         {s.place(5, "0"), ErrInvalidToken},
		"the last of the list":              {s.place(127, "0"), nil},
		"beyond the list":                   {s.place(128, "0"), ErrInvalidToken},
		"far beyond the list":               {s.place(uint64(1<<64-1), "0"), ErrInvalidToken},
		"where a product would wrap around": {s.place(uint64(1<<61), "0"), ErrInvalidToken},
		"a negative index":                  {s.place(-1, "0"), ErrInvalidToken},
		"an index of a fraction":            {s.place(4.5, "0"), ErrInvalidToken},
		"an index as text":                  {s.place("4", "0"), ErrInvalidToken},
		"an index that no list has":         {s.place(1e30, "0"), ErrInvalidToken},
		"no index": {
			map[string]any{"status_list": map[string]any{"uri": s.URL + "/status/0"}}, ErrInvalidToken,
		},
		"no uri": {
			map[string]any{"status_list": map[string]any{"idx": 1}}, ErrInvalidToken,
		},
		"an invalid reference":   {map[string]any{"status_list": "x"}, ErrInvalidToken},
		"null for a list":        {map[string]any{"status_list": nil}, ErrInvalidToken},
		"a list elsewhere":       {at("https://evil.example.com/status/0"), ErrInvalidToken},
		"a list on another port": {at("http://127.0.0.1:1/status/0"), ErrInvalidToken},
		"a list by another scheme": {
			at(strings.Replace(s.URL, "http:", "https:", 1) + "/status/0"), ErrInvalidToken,
		},
		"a list elsewhere with a user": {at(s.URL + "@evil.example.com/status/0"), ErrInvalidToken},
		"a list with a user": {
			at(strings.Replace(s.URL, "//", "//me@", 1) + "/status/0"), ErrInvalidToken,
		},
		"a list with a fragment":              {at(s.URL + "/status/0#x"), ErrInvalidToken},
		"a list at a relative place":          {at("/status/0"), ErrInvalidToken},
		"a list in a file":                    {at("file:///status/0"), ErrInvalidToken},
		"a uri of another type":               {at(7), ErrInvalidToken},
		"a uri that begins like the issuer's": {at(s.URL + ".evil.example.com/status/0"), ErrInvalidToken},
	} {
		t.Run("RS-44 "+name, func(t *testing.T) {
			token := signed(tt.status)
			for range 2 { // the second time from the cache, if any
				expect(t, v, token, tt.want)
				expect(t, strict, token, tt.want)
			}
		})
	}
	for name, status := range map[string]any{
		"no claim": nil, "a claim of other use": "active",
		"another mechanism":   map[string]any{"identifier_list": map[string]any{"id": "1"}},
		"a list of something": []any{1},
	} {
		t.Run("RS-44 "+name+": refused when a status is required", func(t *testing.T) {
			expect(t, v, signed(status), nil)
			expect(t, strict, signed(status), ErrInvalidToken)
		})
	}
	t.Run("RS-48 nothing is asked for a forged token", func(t *testing.T) {
		stranger, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		v, before := s.validator(t), s.polls.Load()
		expect(t, v, s.token(t, "ES256", stranger, s.claims("status", s.place(4, "0"))), ErrInvalidToken)
		if s.polls.Load() != before {
			t.Error("it was")
		}
	})
	t.Run("RS-44 the check can be turned off, with a warning", func(t *testing.T) {
		var log strings.Builder
		before := s.polls.Load()
		v := s.validator(t, func(c *JWTConfig) {
			c.InsecureIgnoreStatus, c.Logger = true, slog.New(slog.NewTextHandler(&log, nil))
		})
		expect(t, v, signed(s.place(5, "0")), nil)
		if s.polls.Load() != before || !strings.Contains(log.String(), "level=WARN") {
			t.Errorf("polled %d times, log %q", s.polls.Load()-before, &log)
		}
		if _, err := NewJWTValidator(JWTConfig{
			Issuer: s.URL, InsecureIgnoreStatus: true, RequireStatus: true}); err == nil {
			t.Error("demanded and ignored at once")
		}
	})
}

func TestStatusToken(t *testing.T) {
	s := newListServer(t, newSignerServer(t))
	stranger, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	for name, sign := range map[string]func(map[string]any) string{
		"signed by a stranger": func(c map[string]any) string {
			return s.token(t, "ES256", stranger, c, "typ", "statuslist+jwt")
		},
		"signed by an unknown key": func(c map[string]any) string {
			return s.token(t, "ES256", nil, c, "typ", "statuslist+jwt", "kid", "nobody")
		},
		"by a key for another algo": func(c map[string]any) string {
			return s.token(t, "EdDSA", nil, c, "typ", "statuslist+jwt", "kid", "ES256")
		},
		"HMAC": func(c map[string]any) string {
			return s.token(t, "HS256", []byte(s.URL+" as an HMAC key, 32 bytes"), c, "typ", "statuslist+jwt", "kid",
				"ES256")
		},
		"that is an access token": func(c map[string]any) string { return s.token(t, "ES256", nil, c) },
		"that is another JWT":     func(c map[string]any) string { return s.token(t, "ES256", nil, c, "typ", "JWT") },
		"that is nothing":         func(map[string]any) string { return "" },
		"that is a page":          func(map[string]any) string { return "<html>" },
		"that is too large":       func(map[string]any) string { return strings.Repeat("x", 1<<20+1) },
		"of another place": func(c map[string]any) string {
			c["sub"] = s.URL + "/status/1"
			return s.token(t, "ES256", nil, c, "typ", "statuslist+jwt")
		},
		"by another issuer": func(c map[string]any) string {
			c["iss"] = "https://evil.example.com"
			return s.token(t, "ES256", nil, c, "typ", "statuslist+jwt")
		},
		"that has expired": func(c map[string]any) string {
			c["exp"] = 1
			return s.token(t, "ES256", nil, c, "typ", "statuslist+jwt")
		},
	} {
		t.Run("RS-44 RS-42 a list "+name+" is invalid, which is no fault of the token", func(t *testing.T) {
			s.sign = sign
			v := s.validator(t)
			expect(t, v, s.with(t, 4), ErrUnavailable)
			expect(t, v, s.with(t, 4), ErrUnavailable)
		})
	}
	t.Run("RS-44 RS-42 every algorithm of the keys will do, and the long form of typ", func(t *testing.T) {
		for _, alg := range []string{"ES256", "EdDSA", "RS256"} {
			s.sign = func(c map[string]any) string {
				return s.token(t, alg, nil, c, "typ", "application/statuslist+jwt")
			}
			expect(t, s.validator(t), s.with(t, 4), nil)
		}
	})
	t.Run("RS-44 RS-42 a list is no access token", func(t *testing.T) {
		expect(t, s.validator(t), s.token(t, "ES256", nil, s.claims(), "typ", "statuslist+jwt"), ErrInvalidToken)
	})
}

func TestStatusPolling(t *testing.T) {
	shared := newSignerServer(t)
	run := func(name string, f func(*testing.T, *listServer)) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f(t, newListServer(t, shared))
				wait.Advance(fetchTimeout) // so that a running fetch ends
			})
		})
	}
	run("RS-44 a revoked token is cut within ttl, from the cache too, and no request waits",
		func(t *testing.T, s *listServer) {
			v := s.validator(t)
			a, b := s.with(t, 3), s.with(t, 4)
			expect(t, v, a, nil)
			expect(t, v, b, nil)
			s.slow = 500 * time.Millisecond
			wait.Advance(7 * time.Second)
			s.set(3, true)
			revoked := time.Now()
			for range 300 {
				wait.Advance(50 * time.Millisecond)
				began := time.Now()
				_, err := validate(v, a)
				if time.Since(began) > 0 {
					t.Fatal("a request waited")
				}
				if err != nil {
					break
				}
			}
			expect(t, v, a, ErrInvalidToken)
			expect(t, v, b, nil)
			if d := time.Since(revoked); d > 15*time.Second {
				t.Errorf("cut after %s", d)
			}
			if n := s.polls.Load(); n != 2 {
				t.Errorf("asked %d times, want 2", n)
			}
		})
	run("RS-44 after a rest the first request waits for the list", func(t *testing.T, s *listServer) {
		v := s.validator(t)
		a := s.with(t, 3)
		expect(t, v, a, nil)
		s.set(3, true)
		wait.Advance(15 * time.Second)
		expect(t, v, a, ErrInvalidToken)
	})
	run("RS-44 what is valid again opens again", func(t *testing.T, s *listServer) {
		s.set(3, true)
		v := s.validator(t)
		a := s.with(t, 3)
		expect(t, v, a, ErrInvalidToken)
		s.set(3, false)
		wait.Advance(15 * time.Second)
		expect(t, v, a, nil)
	})
	run("RS-44 RS-196 1000 requests at once ask once", func(t *testing.T, s *listServer) {
		s.slow = time.Second
		v := s.validator(t)
		token := s.with(t, 3)
		many := func(want error) {
			t.Helper()
			var wg sync.WaitGroup
			for range 1000 {
				wg.Go(func() {
					if _, err := validate(v, token); !errors.Is(err, want) {
						t.Errorf("got %v, want %v", err, want)
					}
				})
			}
			wg.Wait()
		}
		many(nil)
		if n := s.polls.Load(); n != 1 {
			t.Errorf("asked %d times", n)
		}
		wait.Advance(time.Minute)
		s.set(3, true)
		many(ErrInvalidToken)
		if n := s.polls.Load(); n != 2 {
			t.Errorf("after a rest: asked %d times", n-1)
		}
		s.down.Store(true)
		wait.Advance(10 * time.Minute)
		many(ErrUnavailable)
		if n := s.polls.Load(); n != 3 {
			t.Errorf("in an outage: asked %d times", n-2)
		}
	})
	run("RS-44 what has not changed is not sent again, but its successor is", func(t *testing.T, s *listServer) {
		s.change = []any{"exp", time.Now().Add(2 * time.Minute).Unix()}
		v := s.validator(t)
		token := s.with(t, 3)
		for range 4 {
			expect(t, v, token, nil)
			wait.Advance(15 * time.Second)
		}
		if s.polls.Load() != 4 || s.bodies.Load() != 1 {
			t.Errorf("asked %d times, %d with an answer", s.polls.Load(), s.bodies.Load())
		}
		s.change = nil
		expect(t, v, token, nil) // in the second half of its lifetime
		if h := s.asked[len(s.asked)-1]; s.bodies.Load() != 2 || h.Get("If-None-Match") != "" ||
			h.Get("Accept") != "application/statuslist+jwt" {
			t.Errorf("%d with an answer, asked with %v", s.bodies.Load(), h)
		}
		wait.Advance(2 * time.Minute)
		expect(t, v, token, nil)
	})
	run("RS-44 RS-196 an outage: the list serves on for a while, then nothing passes",
		func(t *testing.T, s *listServer) {
			s.change = []any{"exp", nil}
			v := s.validator(t)
			good, bad := s.with(t, 3), s.with(t, 4)
			s.set(4, true)
			expect(t, v, good, nil)
			s.down.Store(true)
			began := time.Now()
			for time.Since(began) < 15*time.Second+5*time.Minute-100*time.Millisecond {
				expect(t, v, good, nil)
				expect(t, v, bad, ErrInvalidToken)
				wait.Advance(100 * time.Millisecond)
			}
			if n := s.polls.Load(); n > 310 {
				t.Errorf("asked %d times, want about one a second", n)
			}
			wait.Advance(200 * time.Millisecond)
			expect(t, v, good, ErrUnavailable)
			expect(t, v, bad, ErrUnavailable)
			r := newRig(t,
				func(c *Config) { c.AuthorizationServers, c.Validator, c.Now = []string{s.URL}, v, time.Now })
			if w := r.call(good, tool("read")); w.Code != 503 || w.Header().Get("Retry-After") == "" ||
				len(r.seen) != 0 {
				t.Errorf("got %d %v", w.Code, w.Header())
			}
			s.down.Store(false)
			wait.Advance(time.Second)
			expect(t, v, good, nil)
		})
	run("RS-44 in an outage without an answer one request waits, not all", func(t *testing.T, s *listServer) {
		v := s.validator(t)
		token := s.with(t, 3)
		expect(t, v, token, nil)
		s.slow = time.Hour
		wait.Advance(20 * time.Second)
		began := time.Now()
		expect(t, v, token, nil)
		if d := time.Since(began); d != fetchTimeout {
			t.Errorf("the first waited %s", d)
		}
		began = time.Now()
		for range 100 {
			wait.Advance(300 * time.Millisecond)
			expect(t, v, token, nil)
		}
		if d := time.Since(began); d != 30*time.Second {
			t.Errorf("the others waited %s", d-30*time.Second)
		}
	})
	run("RS-44 an outage is never outlived beyond the end of the list", func(t *testing.T, s *listServer) {
		s.change = []any{"exp", time.Now().Add(time.Minute).Unix()}
		v := s.validator(t)
		token := s.with(t, 3)
		expect(t, v, token, nil)
		s.down.Store(true)
		wait.Advance(59 * time.Second)
		expect(t, v, token, nil)
		wait.Advance(time.Second)
		expect(t, v, token, ErrUnavailable)
	})
	run("RS-44 how long is for the operator to say", func(t *testing.T, s *listServer) {
		none := s.validator(t, func(c *JWTConfig) { c.StatusStale = -1 })
		some := s.validator(t, func(c *JWTConfig) { c.StatusStale = 30 * time.Second })
		token := s.with(t, 3)
		expect(t, none, token, nil)
		expect(t, some, token, nil)
		s.down.Store(true)
		wait.Advance(15 * time.Second)
		expect(t, none, token, ErrUnavailable)
		expect(t, some, token, nil)
		wait.Advance(30 * time.Second)
		expect(t, some, token, ErrUnavailable)
	})
	run("RS-44 a server that is not up yet is asked once a second", func(t *testing.T, s *listServer) {
		s.down.Store(true)
		v := s.validator(t)
		token := s.with(t, 3)
		for range 100 {
			expect(t, v, token, ErrUnavailable)
			wait.Advance(20 * time.Millisecond)
		}
		if n := s.polls.Load(); n != 2 {
			t.Errorf("asked %d times in two seconds", n)
		}
		s.down.Store(false)
		wait.Advance(time.Second)
		expect(t, v, token, nil)
	})
	run("RS-44 a new token of a list that has grown is good at once", func(t *testing.T, s *listServer) {
		v := s.validator(t)
		expect(t, v, s.with(t, 3), nil)
		s.mu.Lock()
		s.version++
		s.bits = append(s.bits, 0)
		s.mu.Unlock()
		began := time.Now()
		expect(t, v, s.with(t, 130), nil)
		expect(t, v, s.with(t, 500), ErrInvalidToken)
		if d := time.Since(began); d > 2*time.Second || s.polls.Load() != 3 {
			t.Errorf("took %s, asked %d times", d, s.polls.Load())
		}
	})
	run("RS-196 while a list is asked for in the background, requests are no goroutines",
		func(t *testing.T, s *listServer) {
			v := s.validator(t)
			token := s.with(t, 3)
			expect(t, v, token, nil)
			s.slow = time.Hour
			wait.Advance(14*time.Second + 500*time.Millisecond)
			before := runtime.NumGoroutine()
			for range 1000 {
				expect(t, v, token, nil)
			}
			if n := runtime.NumGoroutine() - before; n > 5 {
				t.Errorf("%d goroutines", n)
			}
		})
	run("RS-44 RS-51 so many lists are kept", func(t *testing.T, s *listServer) {
		v := s.validator(t)
		token := func(n int) string {
			return s.token(t, "ES256", nil, s.claims("status", s.place(3, fmt.Sprint(n))))
		}
		first, second := token(0), token(1)
		expect(t, v, first, nil)
		wait.Advance(time.Second)
		expect(t, v, second, nil)
		wait.Advance(time.Second)
		for n := 2; n < maxLists+1; n++ {
			wait.Advance(time.Second / 10)
			expect(t, v, first, nil)
			expect(t, v, token(n), nil)
		}
		polls := s.polls.Load()
		expect(t, v, first, nil)
		if s.polls.Load() != polls {
			t.Error("the one in use is gone")
		}
		s.set(3, true)
		expect(t, v, second, ErrInvalidToken) // fetched again
		expect(t, v, second, ErrInvalidToken)
		if n := s.polls.Load() - polls; n != 1 {
			t.Errorf("the one at rest was asked for %d times", n)
		}
	})
}

func TestStatusAllocations(t *testing.T) {
	s := newListServer(t, newSignerServer(t))
	s.set(5, true)
	v := s.validator(t)
	for index, want := range map[int]error{4: nil, 5: ErrInvalidToken} {
		c := Credential{Scheme: "Bearer", Token: s.with(t, index)}
		v.Validate(context.Background(), c)
		n := testing.AllocsPerRun(100, func() {
			if _, err := v.Validate(context.Background(), c); !errors.Is(err, want) {
				t.Fatal(err)
			}
		})
		if n > 0 {
			t.Errorf("index %d: %v allocations", index, n)
		}
	}
}

func BenchmarkValidStatus(b *testing.B) {
	s := newListServer(b, newSignerServer(b))
	s.bits = make([]byte, 1<<14)
	for name, size := range map[string]int{"cached": 0, "uncached": -1} {
		b.Run(name, func(b *testing.B) {
			v := s.validator(b, func(c *JWTConfig) { c.CacheSize = size })
			c := Credential{Scheme: "Bearer", Token: s.with(b, 1<<16)}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := v.Validate(context.Background(), c); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
