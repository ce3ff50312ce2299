package authserver

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/recent"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// wantApprovals checks the claim approve_tools of an access token, and the same member of its
// introspection.
func (r *rig) wantApprovals(token any, want ...string) {
	r.t.Helper()
	var claims oauth.AccessTokenClaims
	payload, err := base64.RawURLEncoding.DecodeString(strings.Split(token.(string), ".")[1])
	if err == nil {
		err = json.Unmarshal(payload, &claims)
	}
	if err != nil || !slices.Equal(claims.ApproveTools, want) {
		r.t.Errorf("RU-19: the token says %q, %v, want %q", claims.ApproveTools, err, want)
	}
	answer, err := r.Introspect(r.t.Context(), token.(string))
	if err != nil || !answer.Active || !slices.Equal(answer.ApproveTools, want) {
		r.t.Errorf("RU-19: introspection says %q, %v, want %q", answer.ApproveTools, err, want)
	}
}

// TestApproveTools checks that tokens name the tools that the access rules make their user approve
// (RU-19): those of the rules that decide, wherever tokens of a user are issued.
func TestApproveTools(t *testing.T) {
	t.Run("RU-19 a rule counts for its group, and at the next refresh", func(t *testing.T) {
		r := newRig(t)
		r.groups("staff")
		p := r.person()
		_, out := p.token(codeForm(p.approve(wide()).Get("code")))
		r.wantApprovals(out["access_token"])
		refreshed := func(want ...string) {
			t.Helper()
			status, next := p.token(refreshForm(out["refresh_token"]))
			if status != http.StatusOK {
				t.Fatalf("got %d %v", status, next)
			}
			r.wantApprovals(next["access_token"], want...)
			out = next
		}
		r.rule(storage.AccessRule{All: true, Approve: []string{"pay", "delete_*"}})
		refreshed("delete_*", "pay")
		if status, helper := p.token(helperForm(out["access_token"])); status != http.StatusOK {
			t.Errorf("a helper: got %d %v", status, helper)
		} else {
			r.wantApprovals(helper["access_token"], "delete_*", "pay")
		}
		r.rule(storage.AccessRule{Group: "staff", All: true})
		refreshed("delete_*", "pay") // not a member
		if err := r.store.AddMember(t.Context(), "staff", r.aliceID(), r.now()); err != nil {
			t.Fatal(err)
		}
		refreshed()
		r.rule(storage.AccessRule{UserID: r.aliceID(), All: true, Approve: []string{"send"}})
		refreshed("send")
		if err := r.store.DeleteAccessRule(t.Context(), storage.AccessRule{
			Resource: testResource, UserID: r.aliceID(),
		}); err != nil {
			t.Fatal(err)
		}
		r.advance(recent.TTL)
		refreshed()
	})
	t.Run("RU-19 several groups require together, up to a limit", func(t *testing.T) {
		r := newRig(t)
		r.groups("a", "b", "c")
		p := r.person()
		token := func() any {
			t.Helper()
			status, out := p.token(codeForm(p.approve(wide()).Get("code")))
			if status != http.StatusOK {
				t.Fatalf("got %d %v", status, out)
			}
			return out["access_token"]
		}
		for _, group := range []string{"a", "b", "c"} {
			if err := r.store.AddMember(t.Context(), group, r.aliceID(), r.now()); err != nil {
				t.Fatal(err)
			}
		}
		r.rule(storage.AccessRule{Group: "a", All: true, Approve: []string{"pay"}})
		r.rule(storage.AccessRule{Group: "b", All: true, Approve: []string{"send", "pay"}})
		r.rule(storage.AccessRule{Group: "c", All: true})
		r.wantApprovals(token(), "pay", "send")
		for i, group := range []string{"a", "b", "c"} {
			rule := storage.AccessRule{Group: group, All: true}
			for j := range storage.MaxRuleTools {
				rule.Approve = append(rule.Approve, fmt.Sprint("tool", i, "_", j))
			}
			r.rule(rule)
		}
		r.wantApprovals(token(), "*")
	})
}

// TestApproveToolsOfAssertions checks that an assertion for a user gets their approvals, and that
// an assertion for a workload gets none.
func TestApproveToolsOfAssertions(t *testing.T) {
	r := newBearerRig(t)
	r.rule(storage.AccessRule{All: true, Approve: []string{"pay"}})
	out, _ := r.granted(r.jag(r.claims()))
	r.wantApprovals(out.AccessToken, "pay")
	out, _ = r.granted(r.job(r.push()))
	r.wantApprovals(out.AccessToken)
}
