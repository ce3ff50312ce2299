package e2e

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/testkit/nettest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/pgtest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/program"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

const robotConfig = `issuer: http://ADDRESS
data_dir: DIR
secret_key: kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk
MORE
clients: [{id: robot, name: Robot, secret: ` + agentSecret + `, grant_types: [client_credentials], resources: ["http://127.0.0.1:9/mcp"]}]
resources: [{uri: "http://127.0.0.1:9/mcp", name: R, scopes: [{name: mcp, description: use it, default: true}]}]
`

// robots is a server that issues tokens to a client of its operator.
type robots struct {
	*replica
	config string
}

func startRobots(t *testing.T, more string) *robots {
	t.Helper()
	dir, address := t.TempDir(), nettest.For(t)
	r := &robots{config: filepath.Join(dir, "mcp-authd.yaml")}
	text := strings.NewReplacer("ADDRESS", address, "DIR", dir, "MORE", more).Replace(robotConfig)
	if err := os.WriteFile(r.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r.replica = startReplica(t, r.config, address)
	return r
}

// token requests a token and returns the request id.
func (r *robots) token() (id string, status int) {
	resp, err := http.PostForm(r.at("/token"), url.Values{
		"grant_type": {"client_credentials"}, "client_id": {"robot"}, "client_secret": {agentSecret},
		"resource": {"http://127.0.0.1:9/mcp"},
	})
	if err != nil {
		return "", 0
	}
	defer resp.Body.Close()
	return resp.Header.Get("X-Request-Id"), resp.StatusCode
}

// command runs an operator command.
func (r *robots) command(t *testing.T, args ...string) []byte {
	t.Helper()
	var errs bytes.Buffer
	cmd := exec.Command(program.Authd(t), append(args, "--config", r.config)...)
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s%s", args, err, out, &errs)
	}
	return out
}

// TestKillLosesNoEntry: OB-04. After a kill and a restart, the audit log has one entry for each
// token that a client got before.
func TestKillLosesNoEntry(t *testing.T) {
	t.Run("SQLite", func(t *testing.T) { killLosesNoEntry(t, "") })
	t.Run("PostgreSQL", func(t *testing.T) {
		killLosesNoEntry(t, `database: {url: "`+pgtest.Start(t).Database(t)+`"}`)
	})
}

func killLosesNoEntry(t *testing.T, more string) {
	r := startRobots(t, more)
	var mu sync.Mutex // guards acknowledged
	acknowledged := map[string]int{}
	count := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(acknowledged)
	}
	for range 3 {
		before := count()
		var clients sync.WaitGroup
		for range 4 {
			clients.Go(func() {
				for {
					id, status := r.token()
					if status == 0 {
						return // it has been killed
					}
					if status == http.StatusOK {
						mu.Lock()
						acknowledged[id] = 0
						mu.Unlock()
					}
				}
			})
		}
		wait.Until(t, "clients have tokens", func() bool { return count() >= before+20 })
		r.kill()
		clients.Wait()
		r.start(t, r.config)
	}
	r.stop()
	var entries []struct{ Fields map[string]string }
	if err := json.Unmarshal(
		r.command(t, "audit", "list", "--event", "token.issued", "--limit", "0", "--json"), &entries); err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if n, ok := acknowledged[e.Fields["request_id"]]; ok {
			acknowledged[e.Fields["request_id"]] = n + 1
		}
	}
	lost := 0
	for id, n := range acknowledged {
		switch {
		case n == 0:
			lost++
		case n > 1:
			t.Errorf("request %s has %d entries", id, n)
		}
	}
	if lost > 0 {
		t.Errorf("of %d tokens that clients got, %d are not in the audit log", len(acknowledged), lost)
	}
	r.command(t, "audit", "verify")
}
