package mcpresource

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestVerify: a token without a request is checked like one in a request, and can be checked again.
func TestVerify(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	var judged error
	good := Principal{
		Issuer: "https://as.example", Subject: "alice", Audience: []string{"http://localhost/mcp"},
		Scopes: []string{"mcp", "admin"}, ExpiresAt: time.Unix(1_800_000_060, 0),
	}
	answer := good
	g, err := New(Config{
		Resource: "http://localhost/mcp", AuthorizationServers: []string{"https://as.example"},
		Now: func() time.Time { return now }, ClockSkew: time.Nanosecond,
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
		t.Errorf("RS-192 Require without a caller: got %v", err)
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
		{"RS-48 the status is unknown", good, ErrUnavailable, 0, ErrUnavailable},
		{"RS-41 expired", good, nil, 2 * time.Minute, ErrInvalidToken},
		{"RS-39 for another resource", other(func(p *Principal) { p.Audience = []string{"http://localhost/other"} }),
			nil, 0, ErrInvalidToken},
		{"RS-40 of another issuer", other(func(p *Principal) { p.Issuer = "https://evil.example" }), nil, 0,
			ErrInvalidToken},
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

// TestRecheckSays: the result of the new validation counts.
func TestRecheckSays(t *testing.T) {
	h := newECHolder(t)
	for _, tt := range []struct {
		name, token string
		change      func(*Principal)
		err         error
		want        error
	}{
		{"RS-185 as it was", "alice", nil, nil, nil},
		{"RS-185 RS-205 bound to a key, without another proof", "bound-alice", nil, nil, nil},
		{"RS-185 RS-44 a bound one that is revoked", "bound-alice", nil, ErrInvalidToken, ErrInvalidToken},
		{"RS-185 RS-48 a bound one of unknown status", "bound-alice", nil, ErrUnavailable, ErrUnavailable},
		{"RS-185 RS-207 a bound one that is bound no more", "bound-alice", func(p *Principal) { p.Thumbprint = "" },
			nil, ErrInvalidToken},
		{"RS-185 RS-205 by now bound to another key", "bound-alice", func(p *Principal) { p.Thumbprint = "other" },
			nil, ErrInvalidToken},
		{"RS-185 its scope was taken away", "alice", func(p *Principal) { p.Scopes = []string{"other"} }, nil,
			&ScopeError{}},
		{"RS-185 by now another person's", "alice", func(p *Principal) { p.Subject = "bob" }, nil, ErrInvalidToken},
		{"RS-185 by now for another resource", "alice",
			func(p *Principal) { p.Audience = []string{"https://other.example"} }, nil, ErrInvalidToken},
		{"RS-185 its end was brought forward", "alice",
			func(p *Principal) { p.ExpiresAt = p.ExpiresAt.Add(-2 * time.Hour) }, nil, ErrInvalidToken},
	} {
		t.Run(tt.name, func(t *testing.T) {
			begun := false
			r := boundRig(t, h, func(c *Config) {
				validator := c.Validator
				c.Validator = ValidatorFunc(func(ctx context.Context, cred Credential) (*Principal, error) {
					p, err := validator.Validate(ctx, cred)
					if begun && tt.err != nil {
						return nil, tt.err
					}
					own := *p
					if begun && tt.change != nil {
						tt.change(&own)
					}
					return &own, err
				})
			})
			var got error
			r.next = func(_ http.ResponseWriter, req *http.Request) {
				begun = true
				got = r.Recheck(req.Context(), Operation{Method: "tools/call", Name: "read"})
			}
			header := []string{"Authorization", "Bearer " + tt.token}
			if strings.HasPrefix(tt.token, "bound-") {
				header = []string{
					"Authorization", "DPoP " + tt.token, "DPoP",
					h.sign(t, h.claims("POST", resource, tt.token, r.now), nil),
				}
			}
			if w := r.do("POST", "/mcp", tool("read"), header...); w.Code != 200 || !begun {
				t.Fatalf("got %d %s", w.Code, w.Body)
			}
			var lacking *ScopeError
			if _, scope := tt.want.(*ScopeError); scope != errors.As(got, &lacking) ||
				!scope && !errors.Is(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

// TestNobody: the owner of a session must be unambiguous.
func TestNobody(t *testing.T) {
	for name, change := range map[string]func(*Principal){
		"no caller":            func(p *Principal) { p.Subject, p.ClientID = "", "" },
		"a name that is two":   func(p *Principal) { p.Subject = "alice\x00app" },
		"a client that is two": func(p *Principal) { p.ClientID = "x\x00app" },
	} {
		t.Run("RS-112 "+name, func(t *testing.T) {
			r := newRig(t, func(c *Config) {
				validator := c.Validator
				c.Validator = ValidatorFunc(func(ctx context.Context, cred Credential) (*Principal, error) {
					p, err := validator.Validate(ctx, cred)
					own := *p
					change(&own)
					return &own, err
				})
			})
			if w := r.call("alice", tool("read")); w.Code != 401 {
				t.Errorf("got %d", w.Code)
			}
		})
	}
}
