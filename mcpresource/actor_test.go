package mcpresource

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// AS-243, RFC 8693 §4.1: actors are read from tokens, and a policy can require the application
// itself.
func TestActors(t *testing.T) {
	const chain = `{"sub":"reader","nid":"nod_2","act":{"sub":"planner","nid":"nod_1"}}`
	want := []oauth.Actor{{Subject: "reader", NodeID: "nod_2"}, {Subject: "planner", NodeID: "nod_1"}}
	s := newSignerServer(t)
	v, err := NewJWTValidator(JWTConfig{Issuer: s.URL, HTTPClient: s.Client()})
	if err != nil {
		t.Fatal(err)
	}
	deep := strings.Repeat(`{"sub":"a","act":`, oauth.MaxActors) + `{"sub":"a"}` + strings.Repeat("}", oauth.MaxActors)
	for name, tt := range map[string]struct {
		act  string
		want []oauth.Actor
		bad  bool
	}{
		"none":                   {"null", nil, false},
		"a chain":                {chain, want, false},
		"AS-243 too many":        {deep, nil, true},
		"AS-243 no object":       {`"reader"`, nil, true},
		"AS-243 no name we know": {`{"email":"x"}`, []oauth.Actor{{}}, false},
	} {
		t.Run("RFC 8693 4.1: "+name, func(t *testing.T) {
			token := s.token(t, "ES256", nil, s.claims("act", rawJSON(tt.act)))
			p, err := v.Validate(t.Context(), Credential{Token: token})
			if tt.bad {
				if !errors.Is(err, ErrInvalidToken) {
					t.Errorf("a token: got %v, want ErrInvalidToken", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := p.Actors(); !slices.Equal(got, tt.want) {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
	t.Run("of a validator of one's own, and of none", func(t *testing.T) {
		if got := (&Principal{Claims: []byte(`{"act":` + chain + `}`)}).Actors(); !slices.Equal(got, want) {
			t.Errorf("got %+v", got)
		}
		var none *Principal
		if got := none.Actors(); got != nil {
			t.Errorf("got %+v", got)
		}
	})
}

// rawJSON is a claim that is encoded unchanged.
type rawJSON string

// MarshalJSON implements json.Marshaler.
func (r rawJSON) MarshalJSON() ([]byte, error) { return []byte(r), nil }

func TestDirect(t *testing.T) {
	claims := map[string]string{
		"itself": `{}`, "helper": `{"act":{"sub":"reader"}}`, "odd": `{"act":"reader"}`, "torn": `{"act":`,
	}
	r := newRig(t, func(c *Config) {
		rules := c.Policy.(*Rules)
		rules.Direct = []string{"write_*"}
		c.Validator = ValidatorFunc(func(_ context.Context, c Credential) (*Principal, error) {
			p := *people(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))["writer"]
			p.Claims = []byte(claims[c.Token])
			return &p, nil
		})
	})
	for _, tt := range []struct {
		token, tool string
		status      int
	}{
		{"itself", "write_x", 200},
		{"helper", "read", 200},
		{"helper", "write_x", 403},
		{"odd", "write_x", 403},
		{"torn", "write_x", 403},
	} {
		t.Run(fmt.Sprintf("AS-243 %s calls %s", tt.token, tt.tool), func(t *testing.T) {
			before := len(r.seen)
			w := r.call(tt.token, tool(tt.tool))
			if w.Code != tt.status || (len(r.seen) > before) != (tt.status == 200) {
				t.Fatalf("got %d %s", w.Code, w.Body)
			}
			if tt.status == 403 && (w.Header().Get("WWW-Authenticate") != "" ||
				!strings.Contains(w.Body.String(), "This operation is not permitted.") ||
				r.events[len(r.events)-1].Outcome != OutcomeForbidden) {
				t.Errorf("got %v %s", w.Header(), w.Body)
			}
		})
	}
	t.Run("AS-243 the guard says so again to adapters", func(t *testing.T) {
		p := *people(r.now)["writer"]
		p.Claims = []byte(claims["helper"])
		ctx := NewContext(t.Context(), &p)
		op := Operation{Method: "tools/call", Name: "write_x"}
		if err := r.Authorize(ctx, op); !errors.Is(err, ErrForbidden) || r.Covers(ctx, op) {
			t.Errorf("got %v, and it is listed: %v", err, r.Covers(ctx, op))
		}
		if err := r.Authorize(ctx, Operation{Method: "tools/call", Name: "read"}); err != nil {
			t.Error(err)
		}
	})
	t.Run("the log of calls names who acts", func(t *testing.T) {
		p := &Principal{Claims: []byte(`{"act":{"sub":"reader","act":{"client_id":"agent"}}}`)}
		if got := (CallEvent{Principal: p}).LogValue().String(); !strings.Contains(got, "actors=reader agent") {
			t.Errorf("got %s", got)
		}
	})
}
