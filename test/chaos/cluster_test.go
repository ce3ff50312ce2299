package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/testkit/nettest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/pgtest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/program"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

const (
	resource = "http://127.0.0.1:9/mcp"
	password = "correct horse battery"
	// grace is long enough for a client that waits during a restart of PostgreSQL, and shorter than
	// the run.
	grace = 20 * time.Second
)

var resourceServer = url.UserPassword("resource-server", strings.Repeat("s", 40))

// cluster is three replicas behind a load balancer, on a PostgreSQL with a synchronous standby.
type cluster struct {
	*ledger
	t        *testing.T
	nodes    []*node // from startNodes; the first one is the primary
	binary   string
	config   string
	issuer   string
	host     string
	http     *http.Client
	replicas []*replica
}

const settings = `issuer: %s
data_dir: %s
secret_key: %s
database: {url: "%s"}
resources: [{uri: "%s", name: R, scopes: [{name: mcp, description: use it, default: true}]}]
clients: [{id: %s, name: RS, secret: %s, auth_method: client_secret_basic, grant_types: [client_credentials], resources: ["%s"]}]
tokens: {refresh_grace: %s}
registration: {rate_per_minute: 1000000}
log: {level: warn, format: json}
`

// newCluster starts a cluster. database starts PostgreSQL and returns its URL.
func newCluster(t *testing.T, grace time.Duration, database func(*cluster) string) *cluster {
	dir := t.TempDir()
	c := &cluster{
		ledger: newLedger(grace), t: t,
		binary: program.Authd(t), config: filepath.Join(dir, "mcp-authd.yaml"),
	}
	c.http = &http.Client{
		Timeout: time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: 64},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	front := httptest.NewServer(c)
	t.Cleanup(front.Close)
	c.issuer, c.host = front.URL, strings.TrimPrefix(front.URL, "http://")
	secret, _ := resourceServer.Password()
	yaml := fmt.Sprintf(settings, c.issuer, dir, strings.Repeat("k", 40), database(c), resource,
		resourceServer.Username(), secret, resource, grace)
	if err := os.WriteFile(c.config, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		log, err := os.Create(filepath.Join(dir, fmt.Sprintf("replica-%d.log", i)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { log.Close() })
		c.replicas = append(c.replicas, &replica{cluster: c, address: nettest.For(t), log: log})
	}
	return c
}

// node is a PostgreSQL server with a controllable network.
type node struct {
	*pgtest.Server
	valve *valve
}

// standbyName is the name of the node that is not the primary.
const standbyName = "standby"

// startNodes starts the PostgreSQL servers and returns a URL with both.
func (c *cluster) startNodes() string {
	primary := pgtest.StartOwn(c.t, "wal_retrieve_retry_interval=100ms")
	for _, s := range []*pgtest.Server{primary, primary.Standby(c.t, standbyName)} {
		c.nodes = append(c.nodes, &node{s, newValve(c.t, s.Host())})
	}
	err := primary.Exec("ALTER SYSTEM SET synchronous_standby_names = '" + standbyName + "'")
	for _, n := range c.nodes { // the standby needs it after its promotion
		if n.Server != primary {
			err = errors.Join(err, n.Exec("ALTER SYSTEM SET synchronous_standby_names = '"+standbyName+"'"))
		}
		err = errors.Join(err, n.Exec("SELECT pg_reload_conf()"))
	}
	if err := errors.Join(err, c.inSync()); err != nil {
		c.t.Fatal(err)
	}
	return fmt.Sprintf("postgres://postgres@%s,%s/postgres?sslmode=disable", c.nodes[0].valve.Addr(),
		c.nodes[1].valve.Addr())
}

// primary returns the node that accepts writes.
func (c *cluster) primary() *node { return c.nodes[0] }

// inSync waits until commits of the primary are replicated synchronously.
func (c *cluster) inSync() error {
	return c.primary().WaitFor("SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'")
}

// failOver kills the primary, promotes the standby, and makes the old primary its standby.
func (c *cluster) failOver() error {
	old, next := c.nodes[0], c.nodes[1]
	if err := errors.Join(old.Stop(pgtest.Kill), next.Promote()); err != nil {
		return err
	}
	c.nodes = []*node{next, old}
	if err := old.Follow(next.Server, standbyName); err != nil {
		return err
	}
	return c.inSync()
}

// start starts the replicas concurrently on an empty database, and waits for them.
func (c *cluster) start() {
	for _, r := range c.replicas {
		r.done = make(chan struct{})
		go r.supervise()
	}
	c.t.Cleanup(c.stop)
	for _, r := range c.replicas {
		if !within(patience, func() bool { return r.ready() == http.StatusOK }) {
			c.t.Fatalf("a replica did not get ready\n%s", r.errors())
		}
	}
}

// stop ends the replicas like a deployment. They must exit with 0.
func (c *cluster) stop() {
	for _, r := range c.replicas {
		r.end()
	}
	for _, r := range c.replicas {
		<-r.done
		if c.t.Failed() {
			c.t.Logf("errors of %s:\n%s", r.address, r.errors())
		}
	}
}

// command runs mcp-authd on the same installation until it succeeds, which acknowledges the change.
func (c *cluster) command(in string, args ...string) (err error) {
	within(patience, func() bool {
		began := time.Now()
		cmd := exec.Command(c.binary, append(args, "--config", c.config)...)
		cmd.Stdin = strings.NewReader(in)
		out, failed := cmd.CombinedOutput()
		if err = failed; err != nil {
			err = fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, out)
		}
		return err == nil || !c.stormy(began)
	})
	return err
}

// within repeats f until it returns true, and reports whether it did in time.
func within(d time.Duration, f func() bool) bool { return wait.Poll(d, f) }

// pause waits between the steps of a client and between failures, as part of the load. Tests wait
// for events with within.
func pause(d time.Duration) { time.Sleep(d) }

// replica is one server, which is restarted whenever it ends.
type replica struct {
	*cluster
	address string
	log     *os.File
	done    chan struct{}

	mu     sync.Mutex // guards the fields below
	cmd    *exec.Cmd
	killed bool
	down   time.Duration // until the restart
	ending bool
}

func (r *replica) supervise() {
	defer close(r.done)
	for {
		began := time.Now()
		cmd := exec.Command(r.binary, "serve", "--config", r.config)
		cmd.Env = append(os.Environ(), "MCP_AUTHD_LISTEN="+r.address, "MCP_AUTHD_MANAGEMENT_LISTEN=")
		cmd.Stderr = r.log
		r.mu.Lock()
		if r.ending {
			r.mu.Unlock()
			return
		}
		err := cmd.Start()
		r.cmd, r.killed = cmd, false
		r.mu.Unlock()
		if err == nil {
			err = cmd.Wait()
		}
		r.mu.Lock()
		killed, down, ending := r.killed, r.down, r.ending
		r.mu.Unlock()
		switch {
		case ending && err != nil && !killed:
			r.t.Errorf("replica %s did not exit with 0: %v\n%s", r.address, err, r.errors())
			return
		case ending:
			return
		case killed:
			pause(down)
		default: // it may give up at its start, but not while it serves
			if !r.stormy(began) {
				r.breach(weather, "replica %s ended by itself: %v\n%s", r.address, err, r.errors())
			}
			pause(300 * time.Millisecond)
		}
	}
}

// kill ends the replica like a power failure, and restarts it after down.
func (r *replica) kill(down time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.killed, r.down = true, down
	_ = r.cmd.Process.Kill() // it may have ended
}

func (r *replica) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ending = true
	if r.cmd != nil && r.cmd.Process != nil {
		_ = r.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	}
}

func (r *replica) pid() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cmd.Process.Pid
}

// ready returns the status of /readyz, or 0 without a response.
func (r *replica) ready() int {
	resp, err := r.http.Get("http://" + r.address + "/readyz")
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	return resp.StatusCode
}

// cached checks the responses that do not need PostgreSQL. Resource servers and clients fetch them
// before their other requests.
func (r *replica) cached() {
	for _, path := range []string{"/healthz", "/jwks.json", "/.well-known/oauth-authorization-server"} {
		a, _, err := r.attempt(context.Background(), request{method: http.MethodGet, path: path}, r)
		if err != nil || a.status != http.StatusOK {
			r.breach(weather, "%s at %s: %d, %v", path, r.address, a.status, err)
		}
	}
}

// errors returns the replica's last log lines at level error or about status 503. It omits lines
// that were caused by an absence of PostgreSQL.
func (r *replica) errors() string {
	b, err := os.ReadFile(r.log.Name())
	if err != nil {
		return errors.Join(errors.New("no log"), err).Error()
	}
	var out [][]byte
	for line := range bytes.Lines(b) {
		failed := bytes.Contains(line, []byte(`"level":"ERROR"`)) || bytes.Contains(line, []byte(`"status":503`))
		if failed && !r.wasAway(loggedAt(line)) || !bytes.HasPrefix(line, []byte("{")) {
			out = append(out, line)
		}
	}
	return string(bytes.Join(out[max(0, len(out)-20):], nil))
}

// loggedAt returns the time of a log line, or zero.
func loggedAt(line []byte) time.Time {
	var l struct{ Time time.Time }
	_ = json.Unmarshal(line, &l)
	return l.Time
}
