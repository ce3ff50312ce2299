package attempt

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// TestLostBehindAProxy: a proxy that drops Authorization may send its own User-Agent and have
// another address. It is blamed only if there is evidence, and the text says how strong the
// evidence is.
func TestLostBehindAProxy(t *testing.T) {
	const resource = "https://mcp.example.com/mcp"
	step := func(after time.Duration, kind Kind, address, agent string) Step {
		return Step{
			At:      noon.Add(after),
			Kind:    kind,
			Request: Request{Agent: agent},
			Answer:  Answer{Status: 200},
			Keys:    Keys{Address: address},
		}
	}
	token := func(after time.Duration, address, grant string) Step {
		s := step(after, Token, address, "client/1")
		s.Keys.Grant, s.Keys.Resource, s.Keys.Client = grant, resource, "app"
		return s
	}
	call := func(after time.Duration, address, agent string, headers ...string) Step {
		s := step(after, Call, address, agent)
		s.Request.Header, s.Request.Params = headers, []Param{{paramToken, string(TokenNone)}}
		s.Answer, s.Keys.Resource = Answer{Status: 401, Error: "invalid_token"}, resource
		return s
	}
	through := func(after time.Duration, grant string) Step {
		s := step(after, Call, "", "")
		s.Keys.Grant, s.Keys.Resource = grant, resource
		return s
	}
	of := func(s Step, change func(*Step)) Step {
		change(&s)
		return s
	}
	const client, proxy = "192.0.2.1", "203.0.113.9"
	for _, tt := range []struct {
		name  string
		steps []Step
		text  string // part of the verdict that blames a proxy; "": no verdict does
	}{
		{"another agent at the same address", []Step{
			token(0, client, "g1"), call(3*time.Second, client, "proxy/1"),
		}, "3s later a request without Authorization came to the same MCP server, from the same address, as proxy/1"},
		{"another address, and a header of a proxy", []Step{
			token(0, client, "g1"), call(3*time.Second, proxy, "proxy/1", "via"),
		}, "from a proxy at another address, as proxy/1. Nothing else came from there. It is likely"},
		{"the same agent and address", []Step{token(0, client, "g1"), call(time.Second, client, "client/1")},
			"right after that came to the MCP server without Authorization."},
		{"another address, and nothing says that there is a proxy", []Step{
			token(0, client, "g1"), call(3*time.Second, proxy, "proxy/1"),
		}, ""},
		{"two attempts that it may be of", []Step{
			token(0, client, "g1"), token(time.Second, client, "g2"), call(3*time.Second, client, "proxy/1"),
		}, ""},
		{"too late", []Step{token(0, client, "g1"), call(3*time.Minute, client, "proxy/1")}, ""},
		{"the token was used", []Step{
			token(0, client, "g1"), through(time.Second, "g1"), call(3*time.Second, client, "proxy/1"),
		}, ""},
		{"the token is used later", []Step{
			token(0, client, "g1"), call(3*time.Second, client, "proxy/1"), through(9*time.Second, "g1"),
		}, ""},
		{"another client, which goes on", []Step{
			token(0, client, "g1"), call(3*time.Second, client, "other/1"),
			step(4*time.Second, Discovery, client, "other/1"),
		}, ""},
		{"another client, which was there before", []Step{
			step(-5*time.Minute, Registration, client, "other/1"), token(0, client, "g1"),
			call(3*time.Second, client, "other/1"),
		}, ""},
		{"another MCP server", []Step{token(0, client, "g1"), of(call(3*time.Second, client, "proxy/1"), func(s *Step) {
			s.Keys.Resource = "https://mcp.example.com/other"
		})}, ""},
	} {
		t.Run("OB-01 "+tt.name, func(t *testing.T) {
			now, store := noon.Add(30*time.Minute), testStore(t)
			lost := ""
			for i := range tt.steps {
				s := &tt.steps[i]
				s.Reference = "K7PX2M4" + string(rune('A'+i))
				if s.anonymous() {
					lost = s.Reference
				}
				check(t, store.PutSteps(t.Context(), []storage.AttemptStep{{
					At: s.At, Keys: s.all(), Body: s.encode(), KeptUntil: now,
				}}))
			}
			f := Finder{Store: store, Now: func() time.Time { return now }}
			for _, q := range []Query{{}, {Reference: lost}, {Reference: tt.steps[0].Reference}} {
				found, err := f.Find(context.Background(), q)
				check(t, err)
				blamed := ""
				for _, a := range found {
					if a.Fault == AuthorizationLost {
						blamed += a.Text
					}
				}
				if (blamed == "") != (tt.text == "") || !strings.Contains(blamed, tt.text) {
					t.Errorf("by %+v: got %q, want %q", q, blamed, tt.text)
				}
			}
		})
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
