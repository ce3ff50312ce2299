package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/nettest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/pgtest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/program"
)

// echoProgram is an MCP server that answers each request with its process id.
const echoProgram = `while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  [ -n "$id" ] || continue
  printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{},` +
	`"serverInfo":{"name":"echo","version":"%s"}}}\n' "$id" "$$"
done
`

// cluster is several replicas with a program behind them. The test asks them in turn like a load
// balancer.
type cluster struct {
	config, token string
	replicas      []*replica
	turn          int
}

// ask sends a message to the next replica that is up, and returns status, session and body.
func (c *cluster) ask(t *testing.T, session, body string) (status int, opened, answer string) {
	t.Helper()
	for range c.replicas {
		c.turn++
		r := c.replicas[c.turn%len(c.replicas)]
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.at("/mcp"), strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = http.Header{
			"Authorization": {"Bearer " + c.token}, "Content-Type": {"application/json"},
			"Accept": {"application/json, text/event-stream"},
		}
		if session != "" {
			req.Header.Set("Mcp-Session-Id", session)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			continue // it is down: a load balancer uses the next one
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, resp.Header.Get("Mcp-Session-Id"), string(b)
	}
	t.Fatal("no replica is up")
	return 0, "", ""
}

func (c *cluster) open(t *testing.T) (session string) {
	t.Helper()
	status, session, body := c.ask(t, "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":`+
		`{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	if status != http.StatusOK || session == "" {
		t.Fatalf("initialize: %d %s", status, body)
	}
	return session
}

const pinging = `{"jsonrpc":"2.0","id":2,"method":"ping"}`

// TestProgramOnReplicas: RU-08. A session of a program works at each of three replicas. It ends
// with the replica that holds it, and survives a restart of each of the others.
func TestProgramOnReplicas(t *testing.T) {
	c := startCluster(t, 3)
	again := func(r *replica) { r.start(t, c.config) } // until the whole test ends
	session := c.open(t)
	holder := c.replicas[c.turn%len(c.replicas)]
	for range 2 * len(c.replicas) {
		status, _, body := c.ask(t, session, pinging)
		if status != http.StatusOK || !strings.Contains(body, `"result"`) {
			t.Fatalf("RU-08: got %d %s", status, body)
		}
	}
	t.Run("RU-08 replicas that do not hold it are replaced", func(t *testing.T) {
		for _, r := range c.replicas {
			if r == holder {
				continue
			}
			r.stop()
			again(r)
			for range len(c.replicas) {
				if status, _, body := c.ask(t, session, pinging); status != http.StatusOK {
					t.Fatalf("got %d %s", status, body)
				}
			}
		}
	})
	for name, end := range map[string]func(){"killed": func() { holder.kill() }, "stopped": func() { holder.stop() }} {
		t.Run("RU-08 the holder is "+name, func(t *testing.T) {
			session := c.open(t)
			for c.replicas[c.turn%len(c.replicas)] != holder {
				session = c.open(t)
			}
			end()
			status, _, body := c.ask(t, session, pinging)
			// A request that is sent while the connection to the holder breaks ends like a running
			// call.
			if status == http.StatusBadGateway {
				status, _, body = c.ask(t, session, pinging)
			}
			if status != http.StatusNotFound || !strings.Contains(body, "Open a new session") {
				t.Errorf("got %d %s", status, body)
			}
			session = c.open(t)
			if status, _, body := c.ask(t, session, pinging); status != http.StatusOK {
				t.Errorf("a new session: %d %s", status, body)
			}
			again(holder)
		})
	}
}

// startCluster starts n replicas and signs in a user.
func startCluster(t *testing.T, n int) *cluster {
	t.Helper()
	database, dir := pgtest.Start(t).Database(t), t.TempDir()
	c := &cluster{config: filepath.Join(dir, "mcp-authd.yaml")}
	var addresses []string
	for range n {
		addresses = append(addresses, nettest.For(t))
	}
	issuer := "http://" + addresses[0]
	script := filepath.Join(dir, "echo.sh")
	yaml := fmt.Sprintf("issuer: %s\ndata_dir: %s\nsecret_key: %s\ndatabase: {url: %q}\nresources:\n"+
		"  - uri: %s/mcp\n    name: R\n    scopes: [{name: mcp, description: use it, default: true}]\n"+
		"    upstream: {command: [/bin/sh, %q]}\n", issuer, dir, strings.Repeat("k", 40), database, issuer, script)
	for file, text := range map[string]string{c.config: yaml, script: echoProgram} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	add := exec.Command(program.Authd(t), "user", "add", "alice", "--password-stdin", "--config", c.config)
	add.Stdin = bytes.NewReader([]byte("correct horse battery"))
	if out, err := add.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, address := range addresses {
		c.replicas = append(c.replicas, startReplica(t, c.config, address))
	}
	d := &demotest.Demo{Issuer: issuer, MCPURL: issuer + "/mcp"}
	id := register(t, d)
	back, err := demotest.NewPerson("alice",
		"correct horse battery").Visit(issuer + "/authorize?" + authorizeQuery(t, d, id).Encode())
	if err != nil {
		t.Fatal(err)
	}
	status, tokens := post(t, issuer+"/token", url.Values{
		"grant_type": {"authorization_code"}, "client_id": {id}, "code": {back.Query().Get("code")},
		"code_verifier": {verifier},
	})
	if status != http.StatusOK {
		t.Fatalf("got %d %v", status, tokens)
	}
	c.token = tokens["access_token"].(string)
	return c
}
