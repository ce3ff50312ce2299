package mcpresource

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
)

func newIntrospector(t *testing.T, s *signerServer) Validator {
	t.Helper()
	v, err := NewIntrospectionValidator(IntrospectionConfig{Issuer: s.URL, ClientID: "rs", ClientSecret: "s+1"})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func active(more string) string {
	return fmt.Sprintf(`{"active":true,"sub":"alice","client_id":"app","aud":%q,"exp":%d%s}`, resource,
		time.Now().Add(time.Hour).Unix(), more)
}

func TestIntrospectionFlood(t *testing.T) {
	s := newSignerServer(t)
	s.answer = func(token string) string {
		if token == "good" {
			return active("")
		}
		return `{"active":false}`
	}
	t.Run("RS-45 RS-196 so many questions at once, and 503 beyond", func(t *testing.T) {
		v := newIntrospector(t, s)
		if _, err := validate(v, "good"); err != nil {
			t.Fatal(err)
		}
		const atOnce = 64 // see package issuer
		before, hold, more := s.asked.Load(), make(chan struct{}), s.answer
		s.answer = func(token string) string { <-hold; return more(token) }
		defer func() { s.answer = more }()
		r := newRig(t, func(c *Config) {
			c.AuthorizationServers, c.Validator, c.Audit, c.Now = []string{s.URL}, v, nil, time.Now
		})
		h := r.Protect(http.NotFoundHandler())
		results := make(chan int, 2*atOnce)
		var wg sync.WaitGroup
		for i := range 2 * atOnce {
			wg.Go(func() { results <- status(h, fmt.Sprint("junk", i), tool("read"), "") })
		}
		for range atOnce {
			if got := <-results; got != 503 {
				t.Errorf("beyond: got %d", got)
			}
		}
		if w := r.do("POST", "/mcp", tool("read"), "Authorization", "Bearer one-more"); w.Code != 503 ||
			w.Header().Get("Retry-After") == "" {
			t.Errorf("got %d %v", w.Code, w.Header())
		}
		if got := status(h, "good", tool("read"), ""); got == 503 {
			t.Error("a known token is not judged either")
		}
		close(hold)
		wg.Wait()
		for range atOnce {
			if got := <-results; got != 401 {
				t.Errorf("within: got %d", got)
			}
		}
		if n := s.asked.Load() - before; n != atOnce {
			t.Errorf("asked %d times, want %d", n, atOnce)
		}
	})
}

func TestIntrospectedType(t *testing.T) {
	s := newSignerServer(t)
	s.answer = func(token string) string {
		if token == "none" {
			return active("")
		}
		kind, bound := strings.CutSuffix(token, " bound")
		if bound {
			return active(fmt.Sprintf(`,"token_type":%q,"cnf":{"jkt":"thumb"}`, kind))
		}
		return active(fmt.Sprintf(`,"token_type":%q`, kind))
	}
	v := newIntrospector(t, s)
	for kind, want := range map[string]error{
		"none": nil, "Bearer": nil, "bearer": nil, "DPoP bound": nil, "dpop bound": nil, "Bearer bound": nil,
		"DPoP":          ErrInvalidToken,
		"refresh_token": ErrInvalidToken, "Refresh": ErrInvalidToken, "N_A": ErrInvalidToken, "mac": ErrInvalidToken,
		" ": ErrInvalidToken,
	} {
		t.Run("RS-45 token_type "+kind, func(t *testing.T) {
			for range 2 {
				p, err := validate(v, kind)
				if !errors.Is(err, want) {
					t.Errorf("got %v, want %v", err, want)
				}
				if err == nil && strings.HasSuffix(kind, "bound") != (p.Thumbprint == "thumb") {
					t.Errorf("RS-207: bound to %q", p.Thumbprint)
				}
			}
			if kind == "none" {
				return
			}
			answer := oauth.Introspection{Active: true}
			var bound bool
			if answer.TokenType, bound = strings.CutSuffix(kind, " bound"); bound {
				answer.Confirmation = &oauth.Confirmation{Thumbprint: "thumb"}
			}
			p, err := validate(Local(inProcess{"t": answer}), "t")
			if !errors.Is(err, want) || err == nil && bound != (p.Thumbprint == "thumb") {
				t.Errorf("in the same process: got %+v, %v, want %v", p, err, want)
			}
		})
	}
	t.Run("RS-45 a refused type is asked about once", func(t *testing.T) {
		if n := s.asked.Load(); n != 12 {
			t.Errorf("asked %d times", n)
		}
	})
}

// TestIntrospectionIssuer: behind AnyOf, every server could be asked about tokens of others. It
// must neither receive them nor vouch for them.
func TestIntrospectionIssuer(t *testing.T) {
	const partner = "https://partner.example"
	var iss, asked string
	v, err := NewIntrospectionValidator(IntrospectionConfig{
		Issuer: partner, Endpoint: partner + "/introspect", ClientID: "rs", ClientSecret: "secret",
		HTTPClient: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			asked = r.FormValue("token")
			w := httptest.NewRecorder()
			fmt.Fprintf(w, `{"active":true,"iss":%q,"sub":"alice","client_id":"app","aud":%q,"exp":%d}`, iss,
				resource, time.Now().Add(time.Hour).Unix())
			return w.Result(), nil
		})},
	})
	if err != nil {
		t.Fatal(err)
	}
	for said, want := range map[string]error{
		"": nil, partner: nil, authServer: ErrInvalidToken, partner + "/": ErrInvalidToken,
	} {
		t.Run("RS-40 it answers for "+said, func(t *testing.T) {
			iss = said
			if p, err := validate(v, "opaque "+said); !errors.Is(err, want) || err == nil && p.Issuer != partner {
				t.Errorf("got %+v, %v", p, err)
			}
		})
	}
	jwt := func(iss string) string {
		return "e30." + base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"iss":%q}`, iss)) + ".c2ln"
	}
	t.Run("RS-51 it never sees the token of another issuer", func(t *testing.T) {
		asked = ""
		if _, err := validate(v, jwt(authServer)); !errors.Is(err, ErrInvalidToken) || asked != "" {
			t.Errorf("got %v, asked about %q", err, asked)
		}
	})
	t.Run("RS-45 but its own", func(t *testing.T) {
		iss = ""
		if _, err := validate(v, jwt(partner)); err != nil || asked != jwt(partner) {
			t.Errorf("got %v, asked about %q", err, asked)
		}
	})
}
