package mcpresource

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/mcpresource/internal/rules"
)

// AS-238, RFC 9470: a tool that requires an authentication of the user.
func TestAuthentication(t *testing.T) {
	var now time.Time
	says := func(acr string, age time.Duration) []byte {
		return fmt.Appendf(nil, `{"acr":%q,"auth_time":%d}`, acr, now.Add(-age).Unix())
	}
	claims := map[string][]byte{}
	r := newRig(t, func(c *Config) {
		rules := c.Policy.(*Rules)
		rules.Tools["pay"] = []string{"files:write"}
		rules.Tools["delete"] = []string{"files:write", "files:delete"}
		rules.Authentication = map[string]Authentication{
			"files:write":  {ACR: []string{"mfa", "phr"}},
			"files:delete": {ACR: []string{"phr"}, MaxAge: 5 * time.Minute},
		}
		scopes := c.Validator
		c.Validator = ValidatorFunc(func(ctx context.Context, c Credential) (*Principal, error) {
			said, ok := claims[c.Token]
			if !ok {
				return scopes.Validate(ctx, c)
			}
			p := *people(now)["alice"]
			p.Scopes, p.Claims = append(p.Scopes, "files:write", "files:delete"), said
			return &p, nil
		})
	})
	now = r.now
	claims["phr"], claims["mfa"] = says("phr", 5*time.Minute), says("mfa", 0)
	claims["old"], claims["none"] = says("phr", 5*time.Minute+time.Second), []byte(`{}`)
	claims["untold"], claims["odd"] = []byte(`{"acr":"phr"}`), []byte(`{"acr":["phr"],"auth_time":1}`)
	const refused = `Bearer error="insufficient_user_authentication", error_description="This operation needs a stronger or more recent sign-in.", scope="mcp files:write files:delete", acr_values="phr", max_age="300", resource_metadata="` + prmURL + `"`
	for _, tt := range []struct {
		token, tool string
		status      int
	}{
		{"phr", "delete", 200},
		{"phr", "pay", 200},
		{"mfa", "pay", 200},
		{"none", "read", 200},
		{"mfa", "delete", 401},
		{"old", "delete", 401},
		{"none", "delete", 401},
		{"untold", "delete", 401},
		{"odd", "delete", 401},
	} {
		w := r.call(tt.token, tool(tt.tool))
		got := w.Header().Get("WWW-Authenticate")
		if w.Code != tt.status || tt.status == 401 && got != refused {
			t.Errorf("%s with %q: got %d %s", tt.tool, tt.token, w.Code, got)
		}
	}
	if last := r.events[len(r.events)-1].Outcome; last != OutcomeInsufficientAuthentication {
		t.Errorf("the audit says %q", last)
	}
	t.Run("what is missing of scope is said first", func(t *testing.T) {
		if w := r.call("alice", tool("delete")); w.Code != 403 ||
			!strings.Contains(w.Header().Get("WWW-Authenticate"), `error="insufficient_scope"`) {
			t.Errorf("got %d %v", w.Code, w.Header())
		}
	})
	t.Run("adapters are told", func(t *testing.T) {
		p := *people(now)["alice"]
		p.Scopes, p.Claims = append(p.Scopes, "files:write", "files:delete"), claims["old"]
		err := r.Authorize(NewContext(t.Context(), &p), Operation{Method: "tools/call", Name: "delete"})
		var proof *AuthenticationError
		if !errors.As(err, &proof) || proof.Required.MaxAge != 5*time.Minute || len(proof.Required.ACR) != 1 {
			t.Errorf("got %v", err)
		}
	})
	t.Run("the body says it, too", func(t *testing.T) {
		var body rpcError
		w := r.call("old", tool("delete"))
		if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil ||
			body.Error.Data["error"] != "insufficient_user_authentication" {
			t.Errorf("got %s, %v", w.Body, err)
		}
	})
}

// Two requirements without a common class are satisfied by no class, not by any.
func TestAuthenticationsThatExcludeEachOther(t *testing.T) {
	both := rules.BothProofs(Authentication{ACR: []string{"a"}},
		Authentication{ACR: []string{"b"}, MaxAge: time.Minute})
	p := &Principal{Claims: []byte(`{"acr":"a","auth_time":1}`)}
	if !rules.DemandsProof(both) || proves(p, both, time.Unix(1, 0)) {
		t.Errorf("met: %+v", both)
	}
}
