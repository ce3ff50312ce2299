package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/nettest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/pgtest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/program"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
	"github.com/mcp-authd/mcp-authd/mcpresource"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// helper exchanges a token for a sub-agent token at a server, and returns the status and the new
// token.
func helper(t *testing.T, server, clientID, token, name string) (int, string) {
	t.Helper()
	status, out := post(t, server+"/token", url.Values{
		"grant_type": {oauth.GrantTokenExchange}, "client_id": {clientID}, "subject_token": {token},
		"subject_token_type": {"urn:ietf:params:oauth:token-type:access_token"}, "actor": {name},
	})
	made, _ := out["access_token"].(string)
	return status, made
}

// handOn is helper, but fails the test on an error.
func handOn(t *testing.T, server, clientID, token, name string) string {
	t.Helper()
	status, made := helper(t, server, clientID, token, name)
	if status != http.StatusOK {
		t.Fatalf("%s: got %d", name, status)
	}
	return made
}

// TestHelpersAreCut: AS-243. The operator revokes the middle of a tree. A resource server that
// validates tokens locally refuses only the tokens below, within seconds.
func TestHelpersAreCut(t *testing.T) {
	dir := t.TempDir()
	d := demotest.Start(t,
		demotest.Options{Args: []string{"--data", dir}, Env: []string{"MCP_AUTHD_TOKENS_STATUS_TTL=1s"}})
	id := register(t, d)
	own, _ := signIn(t, d, d.Person(), id)["access_token"].(string)
	top := handOn(t, d.Issuer, id, own, "planner")
	middle := handOn(t, d.Issuer, id, top, "reader")
	low := handOn(t, d.Issuer, id, middle, "summarizer")
	v, err := mcpresource.NewJWTValidator(mcpresource.JWTConfig{Issuer: d.Issuer, RequireStatus: true})
	if err != nil {
		t.Fatal(err)
	}
	good := func(token string) bool {
		_, err := v.Validate(t.Context(), mcpresource.Credential{Token: token})
		return err == nil
	}
	for _, token := range []string{own, top, middle, low} {
		if !good(token) || callWhoami(t, d, token) != http.StatusOK {
			t.Fatal("a token of the tree is not good")
		}
	}
	run := func(args ...string) string {
		t.Helper()
		out, err := exec.Command(program.Authd(t), append(args, "--data", dir)...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	tree := run("grant", "list", "--tree")
	m := regexp.MustCompile(`(?m)^grt_\S+ .*\n {4}nod_\S+  planner: .*\n {8}(nod_\S+)  reader: .*\n {12}nod_\S+  summarizer: `).
		FindStringSubmatch(tree)
	if m == nil {
		t.Fatalf("the tree is\n%s", tree)
	}
	if out := run("grant", "revoke", m[1]); !strings.Contains(out, "revoked "+m[1]+" (reader, of grt_") {
		t.Errorf("got %s", out)
	}
	if tree = run("grant", "list", "--tree", "--json"); strings.Contains(tree, "summarizer") ||
		!strings.Contains(tree, `"name": "planner"`) {
		t.Errorf("the tree is\n%s", tree)
	}
	for _, token := range []string{middle, low} {
		if got := callWhoami(t, d, token); got != http.StatusUnauthorized {
			t.Errorf("AS-243 the MCP server of the same process: got %d", got)
		}
		wait.Until(t, "AS-243 AS-226: a token ends with the cut above it", func() bool { return !good(token) })
	}
	for _, token := range []string{own, top} {
		if !good(token) || callWhoami(t, d, token) != http.StatusOK {
			t.Error("a grant above the cut has ended")
		}
	}
	out, err := exec.Command(program.Authd(t), "grant", "revoke", "nod_unknown", "--data", dir).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "there is no helper") {
		t.Errorf("got %v %s", err, out)
	}
}

// TestHelpersOverReplicas: AS-243. Tokens are delegated at one replica and revoked at the other.
func TestHelpersOverReplicas(t *testing.T) {
	database := pgtest.Start(t).Database(t)
	addresses := []string{nettest.For(t), nettest.For(t)}
	issuer, other := "http://"+addresses[0], "http://"+addresses[1]
	config := filepath.Join(t.TempDir(), "mcp-authd.yaml")
	yaml := "issuer: " + issuer + "\ndata_dir: " + t.TempDir() + "\nsecret_key: " + strings.Repeat("k", 40) +
		"\ndatabase: {url: \"" + database + "\"}\n" +
		"resources: [{uri: \"http://127.0.0.1:9/mcp\", name: R, scopes: [{name: mcp, description: use it, default: true}]}]\n"
	if err := os.WriteFile(config, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	add := exec.Command(program.Authd(t), "user", "add", "alice", "--password-stdin", "--config", config)
	add.Stdin = strings.NewReader("correct horse battery")
	if out, err := add.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, a := range addresses {
		startReplica(t, config, a)
	}
	d := &demotest.Demo{Issuer: issuer, MCPURL: "http://127.0.0.1:9/mcp"}
	id := register(t, d)
	own, _ := signIn(t, d, demotest.NewPerson("alice", "correct horse battery"), id)["access_token"].(string)
	top := handOn(t, issuer, id, own, "planner")
	low := handOn(t, other, id, top, "reader")
	if status, _ := post(t, other+"/revoke", url.Values{"client_id": {id}, "token": {top}}); status != http.StatusOK {
		t.Fatalf("got %d", status)
	}
	for _, token := range []string{top, low} {
		if status, _ := helper(t, issuer, id, token, "late"); status != http.StatusBadRequest {
			t.Errorf("the first replica serves a sub-agent that the second has cut: got %d", status)
		}
	}
	handOn(t, issuer, id, own, "another")
}

// TestHelpersAreCutWhileTheyMultiply: AS-243. A sub-agent delegates at two replicas while one of
// them revokes its token. Afterwards none of the delegated tokens is valid at either replica.
func TestHelpersAreCutWhileTheyMultiply(t *testing.T) {
	g := newGateways(t, "", "")
	id := register(t, g.Demo)
	own, _ := signIn(t, g.Demo, g.Person(), id)["access_token"].(string)
	top, other := handOn(t, g.Issuer, id, own, "planner"), handOn(t, g.Issuer, id, own, "other")
	made := make(chan string, 32)
	var asked atomic.Int32
	t.Log(g.race(func(to *replica) string {
		if asked.Add(1) == 16 {
			status, _ := post(t, to.at("/revoke"), url.Values{"client_id": {id}, "token": {top}})
			return fmt.Sprint("cut ", status)
		}
		status, token := helper(t, to.at(""), id, top, "reader")
		if token != "" {
			made <- token
		}
		return fmt.Sprint(status)
	}))
	close(made)
	call := func(to *replica, token string) int {
		return g.do(to, toolRequest(g.MCPURL, "whoami", "Bearer "+token)).status
	}
	for token := range made {
		for _, r := range g.replicas {
			if status := call(r, token); status != http.StatusUnauthorized {
				t.Errorf("below the cut: the gateway answers %d", status)
			}
			if status, _ := helper(t, r.at(""), id, token, "late"); status != http.StatusBadRequest {
				t.Errorf("below the cut: a sub-agent is made, %d", status)
			}
		}
	}
	for _, r := range g.replicas {
		if a, b, c := call(r, own), call(r, other), call(r, top); a != http.StatusOK || b != http.StatusOK ||
			c != http.StatusUnauthorized {
			t.Errorf("the gateway answers %d for the client, %d for another sub-agent, %d for the cut one", a, b, c)
		}
	}
}
