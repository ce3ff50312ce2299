package e2e

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
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

// TestKillLosesNoEntry: OB-04, OP-02. After a kill and a restart, the audit log has one entry for each
// token that a client got before, or counts them.
func TestKillLosesNoEntry(t *testing.T) {
	for _, detail := range []string{"full", "standard"} {
		more := "audit: {detail: " + detail + "}\n"
		t.Run("SQLite "+detail, func(t *testing.T) { killLosesNoEntry(t, detail, more) })
		t.Run("PostgreSQL "+detail, func(t *testing.T) {
			killLosesNoEntry(t, detail, more+`database: {url: "`+pgtest.Start(t).Database(t)+`"}`)
		})
	}
}

func killLosesNoEntry(t *testing.T, detail, more string) {
	r := startRobots(t, more)
	var mu sync.Mutex // guards acknowledged
	acknowledged := map[string]int{}
	unanswered := 0 // by a server that was killed
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
					if status == 0 { // it has been killed
						mu.Lock()
						unanswered++
						mu.Unlock()
						return
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
	var entries []entry
	if err := json.Unmarshal(
		r.command(t, "audit", "list", "--event", "token.issued", "--limit", "0", "--json"), &entries); err != nil {
		t.Fatal(err)
	}
	r.command(t, "audit", "verify")
	if detail == "standard" {
		wantCounted(t, entries, len(acknowledged), unanswered)
		return
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
}

// entry is an entry of the audit log.
type entry struct{ Fields map[string]string }

// wantCounted checks that few entries count all tokens that were acknowledged, and at most the unanswered ones besides.
func wantCounted(t *testing.T, entries []entry, acknowledged, unanswered int) {
	t.Helper()
	total := 0
	for _, e := range entries {
		n, err := strconv.Atoi(cmp.Or(e.Fields["count"], "1"))
		if err != nil {
			t.Fatal(err)
		}
		total += n
	}
	if total < acknowledged || total > acknowledged+unanswered || len(entries) > 2*4 { // an entry and a count a start
		t.Errorf("OP-02: %d entries count %d tokens; clients got %d, and %d requests had no answer", len(entries), total,
			acknowledged, unanswered)
	}
}
