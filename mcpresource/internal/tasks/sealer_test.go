package tasks

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/mcpresource/internal/token"
)

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
	alice, bob := &token.Principal{Issuer: "i", Subject: "alice", ClientID: "c"},
		&token.Principal{Issuer: "i", Subject: "bob", ClientID: "c"}
	sealed := s.Seal(alice, "op", []byte("state"), time.Minute)
	if strings.Contains(sealed, "state") || sealed == s.Seal(alice, "op", []byte("state"), time.Minute) {
		t.Errorf("RS-181: it can be read, or told: %s", sealed)
	}
	late := sealer(key)
	late.now = func() time.Time { return now.Add(time.Minute) }
	for _, tt := range []struct {
		name, operation, sealed string
		s                       *Sealer
		p                       *token.Principal
		good                    bool
	}{
		{"RS-181 as it was sealed", "op", sealed, s, alice, true},
		{"RS-181 the key is an older one by now", "op", sealed, sealer(other, key), alice, true},
		{"RS-181 without the key", "op", sealed, sealer(other), alice, false},
		{"RS-182 another person", "op", sealed, s, bob, false},
		{"RS-182 no caller", "op", sealed, s, nil, false},
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
	if a, b := sealer(),
		sealer(); func() bool {
		_, err := b.Open(alice, "op", a.Seal(alice, "op", nil, time.Minute))
		return err == nil
	}() {
		t.Error("two processes have the same key")
	}
}

// FuzzSealer modifies a valid value. Each process of a fuzzing run has its own value, so the input
// is the modification.
func FuzzSealer(f *testing.F) {
	s, err := NewSealer([]byte(strings.Repeat("k", 32)))
	if err != nil {
		f.Fatal(err)
	}
	p := &token.Principal{Subject: "alice"}
	good := s.Seal(p, "op", []byte("state"), time.Hour)
	f.Add(uint(0), "", "")
	f.Add(uint(5), "A", "")
	f.Add(uint(0), "", "=")
	f.Add(uint(0), "", "\n")
	f.Fuzz(func(t *testing.T, at uint, put, tail string) {
		from := int(at % uint(len(good)))
		changed := good[:from] + put + good[min(from+len(put), len(good)):] + tail
		if _, err := s.Open(p, "op", changed); (err == nil) != (changed == good) {
			t.Errorf("%q for %q: %v", changed, good, err)
		}
	})
}
