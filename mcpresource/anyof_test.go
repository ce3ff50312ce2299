package mcpresource

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

func TestSeveralIssuers(t *testing.T) {
	a, b := newSignerServer(t), newSignerServer(t)
	b.answer = func(string) string { return `{"active":false}` }
	validator := func(t *testing.T) Validator {
		var list []Validator
		for _, s := range []*signerServer{a, b} {
			v, err := NewJWTValidator(JWTConfig{Issuer: s.URL})
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, v)
		}
		opaque, err := NewIntrospectionValidator(IntrospectionConfig{
			Issuer: b.URL, ClientID: "rs", ClientSecret: "s+1",
		})
		if err != nil {
			t.Fatal(err)
		}
		return AnyOf(append(list, opaque)...)
	}
	t.Run("RS-40 each signs for itself", func(t *testing.T) {
		v := validator(t)
		for _, s := range []*signerServer{a, b} {
			if p, err := validate(v, s.token(t, "ES256", nil, s.claims())); err != nil || p.Issuer != s.URL {
				t.Errorf("got %+v, %v", p, err)
			}
		}
		if _, err := validate(v, a.token(t, "ES256", nil, b.claims())); !errors.Is(err, ErrInvalidToken) {
			t.Errorf("one signed for the other: got %v", err)
		}
	})
	t.Run("RS-40 RS-44 an outage of one does not affect the other", func(t *testing.T) {
		v := validator(t)
		a.down.Store(true)
		defer a.down.Store(false)
		if _, err := validate(v, b.token(t, "ES256", nil, b.claims())); err != nil {
			t.Errorf("the other: got %v", err)
		}
		if _, err := validate(v, a.token(t, "ES256", nil, a.claims())); !errors.Is(err, ErrUnavailable) ||
			errors.Is(err, ErrInvalidToken) {
			t.Errorf("the one: got %v", err)
		}
		if _, err := validate(v, b.token(t, "ES256", nil, b.claims("exp", 1))); !errors.Is(err, ErrInvalidToken) {
			t.Errorf("a bad one of the other is still bad: got %v", err)
		}
	})
}

// TestOutage checks the behavior that the package doc promises under "Outages".
func TestOutage(t *testing.T) {
	s := newSignerServer(t)
	var mu sync.Mutex
	now := time.Now()
	clock := func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	advance := func(d time.Duration) { mu.Lock(); defer mu.Unlock(); now = now.Add(d) }
	v, err := NewJWTValidator(JWTConfig{Issuer: s.URL, Now: clock})
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, func(c *Config) { c.Validator, c.AuthorizationServers, c.Now = v, []string{s.URL}, clock })
	lasting := []any{"exp", now.Add(1000 * time.Hour).Unix()}
	known := s.token(t, "ES256", nil, s.claims(lasting...))
	if w := r.call(known, tool("read")); w.Code != 200 {
		t.Fatalf("got %d", w.Code)
	}
	s.down.Store(true)
	advance(refreshAfter)
	r.call(known, tool("read")) // triggers a background fetch
	unseen := s.token(t, "EdDSA", nil, s.claims(lasting...))
	stranger := s.token(t, "ES256", nil, s.claims(lasting...), "kid", "ES256-0")
	wait.Until(t, "the reading of the keys fails", func() bool {
		_, err := validate(v, stranger)
		return errors.Is(err, ErrUnavailable)
	})
	next, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	rotated := s.token(t, "ES256", next, s.claims(lasting...), "kid", "ES256-2")
	for _, step := range []struct {
		name, token string
		after       time.Duration
		want        int
	}{
		{"RS-46 a token that was seen before", known, 0, 200},
		{"RS-46 one that was not, by a key that was", unseen, 0, 200},
		{"RS-46 by a key that was not: it may be good", rotated, 0, 503},
		{"RS-46 the same when there was time to read", rotated, refreshPause, 503},
		{"RS-42 a bad signature is bad", unseen[:len(unseen)-8] + "AAAAAAAA", 0, 401},
		{"RS-46 keys serve on for a day", known, staleFor - time.Hour, 200},
		{"RS-46 and no longer", known, 2 * time.Hour, 503},
	} {
		advance(step.after)
		w := r.call(step.token, tool("read"))
		if w.Code != step.want ||
			w.Code == 503 && (w.Header().Get("Retry-After") == "" || w.Header().Get("WWW-Authenticate") != "") {
			t.Errorf("%s: got %d %v, want %d", step.name, w.Code, w.Header(), step.want)
		}
	}
	s.rotate(next)
	s.down.Store(false)
	advance(refreshPause)
	for name, token := range map[string]string{"RS-46 afterwards": known, "RS-46 the new key too": rotated} {
		if w := r.call(token, tool("read")); w.Code != 200 {
			t.Errorf("%s: got %d", name, w.Code)
		}
	}
	if !slices.ContainsFunc(r.events,
		func(e Event) bool { return e.Outcome == "unavailable" && e.Status == http.StatusServiceUnavailable }) {
		t.Error("no event of the outage")
	}
}

// BenchmarkAnyOf measures that a cached token does not pay for the issuers before its own.
func BenchmarkAnyOf(b *testing.B) {
	var list []Validator
	var last *signerServer
	for range 3 {
		last = newSignerServer(b)
		v, err := NewJWTValidator(JWTConfig{Issuer: last.URL})
		if err != nil {
			b.Fatal(err)
		}
		list = append(list, v)
	}
	v := AnyOf(list...)
	for _, extra := range []int{0, 100} {
		claims := last.claims("exp", time.Now().Add(100*time.Hour).Unix())
		for i := range extra {
			claims[fmt.Sprint("claim", i)] = "value"
		}
		token := last.token(b, "ES256", nil, claims)
		b.Run(fmt.Sprintf("third of three, %d claims", len(claims)), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := validate(v, token); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
