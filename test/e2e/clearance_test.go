package e2e

import (
	"net/http"
	"net/url"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/program"
)

// clearanceLink matches the link in the response to a call that a user must approve.
var clearanceLink = regexp.MustCompile(`Open (\S+/clearance/clr_\S+) to do so, then call again\.`)

// pay calls the tool pay of a gateway.
func (g *gateways) pay(to *replica, token, arguments string) answer {
	return g.do(to, callRequest(g.MCPURL, "pay", arguments, "Bearer "+token))
}

// held returns the link to the page that a call waits for. The call must not reach the MCP server.
func (g *gateways) held(t *testing.T, to *replica, token, arguments string) (link string) {
	t.Helper()
	before := g.paid.Load()
	got := g.pay(to, token, arguments)
	m := clearanceLink.FindStringSubmatch(got.body)
	if got.status != http.StatusForbidden || m == nil || g.paid.Load() != before {
		t.Fatalf("%s: got %d %s, want that it waits", arguments, got.status, got.body)
	}
	id := m[1][strings.LastIndex(m[1], "/")+1:]
	for _, c := range challenges(got.header) {
		if c.Params["error"] == "insufficient_scope" &&
			slices.Contains(strings.Fields(c.Params["scope"]), "clearance:"+id) {
			return m[1]
		}
	}
	t.Fatalf("%s: no challenge names the scope of %s: %v", arguments, id, got.header)
	return ""
}

// TestClearanceOverReplicas: two processes on one PostgreSQL are gateways to one MCP server. A call
// is requested at one, approved on a page, and made at both.
func TestClearanceOverReplicas(t *testing.T) {
	g := newGateways(t, `tools: [{name: pay, clearance: {by: person, when: "arguments.amount > 100"}}]`, "")
	one, two := g.replicas[0], g.replicas[1]
	alice, id := g.Person(), register(t, g.Demo)
	signedIn := func(client string) string { return signIn(t, g.Demo, alice, client)["access_token"].(string) }
	token := signedIn(id)
	const large = `{"amount":101,"to":"bob"}`
	approve := func(t *testing.T, token string) (link string) {
		t.Helper()
		link = g.held(t, one, token, large)
		if err := alice.Answer(link); err != nil {
			t.Fatal(err)
		}
		if last := alice.Pages[len(alice.Pages)-1]; !strings.Contains(last, "You have approved the call") {
			t.Fatalf("the person sees %s", last)
		}
		return link
	}
	if got := g.pay(two, token, `{"amount":100}`); got.status != http.StatusOK || g.paid.Load() != 1 {
		t.Fatalf("a small amount: got %d %s", got.status, got.body)
	}
	t.Run("RS-217: the same call waits for the same page at both replicas, once approved nothing else passes",
		func(t *testing.T) {
			link := g.held(t, one, token, large)
			if again := g.held(t, two, token, `{ "to":"bob", "amount":101 }`); again != link {
				t.Errorf("got %s and %s", link, again)
			}
			if approved := approve(t, token); approved != link {
				t.Errorf("got %s and %s", link, approved)
			}
			for _, other := range []string{
				`{"amount":102,"to":"bob"}`, `{"amount":101.0,"to":"bob"}`, `{"amount":101,"to":"Bob"}`,
				`{"amount":101}`, `{"amount":101,"to":"bob","cc":null}`,
			} {
				for _, r := range g.replicas {
					if g.held(t, r, token, other) == link {
						t.Errorf("%s waits for the page of another call", other)
					}
				}
			}
			stranger := register(t, g.Demo)
			if g.held(t, two, signedIn(stranger), large) == link {
				t.Error("another client waits for the same page")
			}
			if g.held(t, two, signedIn(id), large) == link {
				t.Error("another grant of the client waits for the same page")
			}
		})
	t.Run("RS-217: of 32 retries over both replicas one reaches the MCP server", func(t *testing.T) {
		before := g.paid.Load()
		said := g.race(func(to *replica) string {
			got := g.pay(to, token, large)
			switch {
			case got.status == http.StatusOK && strings.Contains(got.body, `"result"`):
				return "passed"
			case got.status == http.StatusForbidden && clearanceLink.MatchString(got.body):
				return "waits"
			}
			t.Errorf("got %d %s", got.status, got.body)
			return "neither"
		})
		if n := g.paid.Load() - before; said["passed"] != 1 || said["waits"] != 31 || n != 1 {
			t.Errorf("got %v, and %d calls at the MCP server", said, n)
		}
	})
	t.Run("RS-217: a refusal at one replica is told at the other", func(t *testing.T) {
		const refused = `{"amount":500,"to":"eve"}`
		link := g.held(t, one, token, refused)
		no := demotest.NewPerson(g.Username, g.Password)
		no.Decision = "deny"
		if err := no.Answer(link); err != nil {
			t.Fatal(err)
		}
		got := g.pay(two, token, refused)
		if got.status != http.StatusForbidden || !strings.Contains(got.body, "denied by the person") ||
			strings.Contains(got.body, "/clearance/") {
			t.Errorf("got %d %s", got.status, got.body)
		}
	})
	ends := func(name string, end func(t *testing.T, token string)) {
		t.Run(name, func(t *testing.T) {
			token := signedIn(id)
			approve(t, token)
			before := g.paid.Load()
			end(t, token)
			for _, r := range g.replicas {
				got := g.pay(r, token, large)
				if got.status != http.StatusUnauthorized || g.paid.Load() != before {
					t.Errorf("got %d %s, and %d calls at the MCP server", got.status, got.body, g.paid.Load()-before)
				}
			}
		})
	}
	ends("RS-217: the grant is revoked before the retry", func(t *testing.T, token string) {
		form := url.Values{"client_id": {id}, "token": {token}}
		if status, out := post(t, two.at("/revoke"), form); status != http.StatusOK {
			t.Fatalf("got %d %v", status, out)
		}
	})
	ends("RS-217: the account is disabled before the retry", func(t *testing.T, _ string) {
		disable := exec.Command(program.Authd(t), "user", "disable", g.Username, "--config", g.config)
		if out, err := disable.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	})
}
