package mcpresource

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestCheck: a task that runs for long can ask whether its caller is still good.
func TestCheck(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	var judged error
	g, err := New(Config{
		Resource: "http://localhost/mcp", AuthorizationServers: []string{"https://as.example"}, Now: func() time.Time { return now }, ClockSkew: time.Nanosecond,
		Policy: &Rules{Base: []string{"mcp"}, Implies: map[string][]string{"admin": {"files:write"}}},
		Validator: ValidatorFunc(func(context.Context, Credential) (*Principal, error) {
			return &Principal{Issuer: "https://as.example", Subject: "alice", Audience: []string{"http://localhost/mcp"}, Scopes: []string{"mcp", "admin"}, ExpiresAt: time.Unix(1_800_000_060, 0)}, judged
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	var p *Principal
	var require [2]error
	h := g.Protect(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		p, _ = FromContext(r.Context())
		require = [2]error{g.Require(r.Context(), "files:write"), g.Require(r.Context(), "other")}
	}))
	r := httptest.NewRequest(http.MethodPost, "http://localhost/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
	r.Header.Set("Authorization", "Bearer the-token")
	h.ServeHTTP(httptest.NewRecorder(), r)
	var lacking *ScopeError
	if require[0] != nil || !errors.As(require[1], &lacking) || lacking.Missing.String() != "other" {
		t.Errorf("RS-192 Require: got %v", require)
	}
	if err := g.Require(t.Context(), "mcp"); !errors.Is(err, ErrNoCaller) {
		t.Errorf("RS-192 Require of nobody: got %v", err)
	}
	if text := fmt.Sprintf("%+v %#v", p, p); strings.Contains(text, "the-token") {
		t.Errorf("SP-28: printing a caller shows the token: %s", text)
	}
	for _, tt := range []struct {
		name   string
		judged error
		after  time.Duration
		want   error
	}{
		{"RS-44 still good", nil, 0, nil},
		{"RS-44 revoked", fmt.Errorf("%w: gone", ErrInvalidToken), 0, ErrInvalidToken},
		{"RS-48 nobody can say", errors.New("connection refused"), 0, ErrUnavailable},
		{"RS-41 expired", nil, 2 * time.Minute, ErrInvalidToken},
	} {
		t.Run(tt.name, func(t *testing.T) {
			judged, now = tt.judged, time.Unix(1_800_000_000, 0).Add(tt.after)
			if err := p.Check(t.Context()); !errors.Is(err, tt.want) || tt.want == nil && err != nil {
				t.Errorf("Check: got %v, want %v", err, tt.want)
			}
			if _, err := g.Verify(t.Context(), Credential{Scheme: "Bearer", Token: "x"}); !errors.Is(err, tt.want) || tt.want == nil && err != nil {
				t.Errorf("Verify: got %v, want %v", err, tt.want)
			}
		})
	}
	t.Run("RS-41 a caller that no guard has seen", func(t *testing.T) {
		if err := (&Principal{ExpiresAt: time.Now().Add(time.Hour)}).Check(t.Context()); err != nil {
			t.Errorf("got %v", err)
		}
		for _, p := range []*Principal{{}, {ExpiresAt: time.Now().Add(-time.Second)}} {
			if err := p.Check(t.Context()); !errors.Is(err, ErrInvalidToken) {
				t.Errorf("got %v", err)
			}
		}
		if err := (*Principal)(nil).Check(t.Context()); !errors.Is(err, ErrNoCaller) {
			t.Errorf("got %v", err)
		}
	})
}

func TestSealer(t *testing.T) {
	key, other := []byte(strings.Repeat("k", 32)), []byte(strings.Repeat("o", 32))
	sealer := func(keys ...[]byte) *Sealer {
		s, err := NewSealer(keys...)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := sealer(key)
	now := time.Now()
	s.now = func() time.Time { return now }
	alice, bob := &Principal{Issuer: "i", Subject: "alice", ClientID: "c"}, &Principal{Issuer: "i", Subject: "bob", ClientID: "c"}
	sealed := s.Seal(alice, "op", []byte("state"), time.Minute)
	if strings.Contains(sealed, "state") || sealed == s.Seal(alice, "op", []byte("state"), time.Minute) {
		t.Errorf("RS-181: it can be read, or told: %s", sealed)
	}
	late := sealer(key)
	late.now = func() time.Time { return now.Add(time.Minute) }
	for _, tt := range []struct {
		name, operation, sealed string
		s                       *Sealer
		p                       *Principal
		good                    bool
	}{
		{"RS-181 as it was sealed", "op", sealed, s, alice, true},
		{"RS-181 the key is an older one by now", "op", sealed, sealer(other, key), alice, true},
		{"RS-181 without the key", "op", sealed, sealer(other), alice, false},
		{"RS-182 somebody else", "op", sealed, s, bob, false},
		{"RS-182 nobody", "op", sealed, s, nil, false},
		{"RS-182 another operation", "op2", sealed, s, alice, false},
		{"RS-182 too late", "op", sealed, late, alice, false},
		{"RS-181 cut off", "op", sealed[:len(sealed)-2], s, alice, false},
		{"RS-181 empty", "op", "", s, alice, false},
		{"RS-181 not ours", "op", "AAAA", s, alice, false},
		{"RS-181 too long", "op", strings.Repeat("A", maxSealed+4), s, alice, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.s.Open(tt.p, tt.operation, tt.sealed)
			if tt.good && (err != nil || string(got) != "state") || !tt.good && !errors.Is(err, ErrState) {
				t.Errorf("got %q %v", got, err)
			}
		})
	}
	if _, err := NewSealer(key[:31]); err == nil {
		t.Error("a short key was taken")
	}
	if a, b := sealer(), sealer(); func() bool { _, err := b.Open(alice, "op", a.Seal(alice, "op", nil, time.Minute)); return err == nil }() {
		t.Error("two processes have the same key")
	}
}

func FuzzSealer(f *testing.F) {
	s, err := NewSealer([]byte(strings.Repeat("k", 32)))
	if err != nil {
		f.Fatal(err)
	}
	p := &Principal{Subject: "alice"}
	good := s.Seal(p, "op", []byte("state"), time.Hour)
	f.Add(good)
	f.Add("")
	f.Fuzz(func(t *testing.T, sealed string) {
		if _, err := s.Open(p, "op", sealed); err == nil && sealed != good {
			t.Errorf("opened %q", sealed)
		}
	})
}
