package authserver

import (
	"strings"
	"testing"
	"time"
)

// Security L16: on loopback the session's cookie goes to every port, so it is valid for hours.
func TestSessionOnLoopback(t *testing.T) {
	r := newRig(t) // its issuer is on loopback
	p := r.person()
	p.approve(authorizeQuery())
	for _, tt := range []struct {
		later time.Duration
		login bool
	}{{11 * time.Hour, false}, {61 * time.Minute, true}} {
		r.advance(tt.later)
		pg := p.get("/authorize?" + authorizeQuery().Encode())
		if got := strings.Contains(pg.body, `name="password"`); got != tt.login {
			t.Errorf("%v later: got a form to sign in: %v, want %v (%d)", tt.later, got, tt.login, pg.status)
		}
	}
	for issuer, want := range map[string]time.Duration{
		"http://localhost:8414": 12 * time.Hour, "http://127.0.0.1:8414": 12 * time.Hour,
		"http://[::1]:8414/as":   12 * time.Hour,
		"https://localhost:8414": 14 * 24 * time.Hour, "https://auth.example.com": 14 * 24 * time.Hour,
	} {
		if got := defaultSessionTTL(issuer); got != want {
			t.Errorf("%s: got %v, want %v", issuer, got, want)
		}
	}
}
