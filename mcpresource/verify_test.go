package mcpresource

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestVerify: a token that comes without a request is judged as one that comes with it,
// and can be judged again.
func TestVerify(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	var judged error
	good := Principal{Issuer: "https://as.example", Subject: "alice", Audience: []string{"http://localhost/mcp"}, Scopes: []string{"mcp", "admin"}, ExpiresAt: time.Unix(1_800_000_060, 0)}
	answer := good
	g, err := New(Config{
		Resource: "http://localhost/mcp", AuthorizationServers: []string{"https://as.example"}, Now: func() time.Time { return now }, ClockSkew: time.Nanosecond,
		Policy:    &Rules{Base: []string{"mcp"}, Implies: map[string][]string{"admin": {"files:write"}}},
		Validator: ValidatorFunc(func(context.Context, Credential) (*Principal, error) { return &answer, judged }),
	})
	if err != nil {
		t.Fatal(err)
	}
	c := Credential{Scheme: "Bearer", Token: "the-token"}
	p, err := g.Verify(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if text := fmt.Sprintf("%+v %#v", p, p); strings.Contains(text, "the-token") {
		t.Errorf("SP-28: printing a caller shows the token: %s", text)
	}
	ctx := NewContext(t.Context(), p)
	var lacking *ScopeError
	if err := g.Require(ctx, "files:write"); err != nil {
		t.Errorf("RS-192 Require: got %v", err)
	}
	if err := g.Require(ctx, "other"); !errors.As(err, &lacking) || lacking.Missing.String() != "other" {
		t.Errorf("RS-192 Require: got %v", err)
	}
	if err := g.Require(t.Context(), "mcp"); !errors.Is(err, ErrNoCaller) {
		t.Errorf("RS-192 Require of nobody: got %v", err)
	}
	other := func(change func(*Principal)) Principal { p := good; change(&p); return p }
	for _, tt := range []struct {
		name   string
		answer Principal
		judged error
		after  time.Duration
		want   error
	}{
		{"RS-44 good", good, nil, 0, nil},
		{"RS-44 revoked", good, fmt.Errorf("%w: gone", ErrInvalidToken), 0, ErrInvalidToken},
		{"RS-48 nobody can say", good, ErrUnavailable, 0, ErrUnavailable},
		{"RS-41 expired", good, nil, 2 * time.Minute, ErrInvalidToken},
		{"RS-39 for another resource", other(func(p *Principal) { p.Audience = []string{"http://localhost/other"} }), nil, 0, ErrInvalidToken},
		{"RS-40 of another issuer", other(func(p *Principal) { p.Issuer = "https://evil.example" }), nil, 0, ErrInvalidToken},
		{"RS-80 bound to a key", other(func(p *Principal) { p.Thumbprint = "x" }), nil, 0, ErrInvalidToken},
	} {
		t.Run(tt.name, func(t *testing.T) {
			answer, judged, now = tt.answer, tt.judged, time.Unix(1_800_000_000, 0).Add(tt.after)
			if _, err := g.Verify(t.Context(), c); !errors.Is(err, tt.want) || tt.want == nil && err != nil {
				t.Errorf("got %v, want %v", err, tt.want)
			}
			if tt.judged == nil && tt.after == 0 {
				return
			}
			if err := g.Recheck(ctx, Operation{Method: "ping"}); !errors.Is(err, tt.want) {
				t.Errorf("Recheck: got %v, want %v", err, tt.want)
			}
		})
	}
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
