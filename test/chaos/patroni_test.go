//go:build patroni && linux

package chaos

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/testkit/nettest"
)

// TestPatroni tests replicas on the set-up of docs/postgresql.md with its files (DL-03). The
// primary is lost, comes back as the standby, is switched over, and hangs until the standby has
// replaced it. Acknowledged data must remain.
func TestPatroni(t *testing.T) {
	r := newReference(t)
	x := newRun(newCluster(t, 2*time.Minute, func(*cluster) string { return r.url() }), plan{
		clients: 40, people: 3, lasts: time.Minute, pause: 3 * time.Second,
	})
	// to runs event and waits until next is the primary. No replica may restart.
	to := func(next *machine, event func()) {
		pids := map[*replica]int{}
		for _, one := range x.up() {
			pids[one] = one.pid()
		}
		x.leave()
		x.failovers.Add(1)
		event()
		if !within(failover, func() bool { return next.is("primary") }) {
			t.Errorf("%s does not become the primary", next.name)
		}
		x.recovered(pids)
		x.arrive()
	}
	x.during(func() {
		r.metrics()
		pause(5 * time.Second)
		primary, standby := r.inSync()
		to(standby, func() { primary.signal(syscall.SIGKILL) })
		primary.patroni.end()
		primary.patroni = primary.start(r.secrets, "patroni", filepath.Join(primary.dir, "patroni.yaml"))

		primary, standby = r.inSync()
		to(standby, func() {
			out, err := exec.Command("patronictl", "-c", filepath.Join(primary.dir, "patroni.yaml"), "switchover",
				"--force", "--candidate", standby.name, "mcp-authd").CombinedOutput()
			if err != nil {
				t.Errorf("patronictl: %v\n%s", err, out)
			}
		})

		primary, standby = r.inSync()
		to(standby, func() { primary.signal(syscall.SIGSTOP) })
		primary.signal(syscall.SIGCONT)
		r.inSync() // it must not continue as a second primary
		x.caches(r)
		x.bounces(r)
		pause(time.Until(x.started.Add(x.lasts)))
		within(failover, x.muchHappened)
	})
}

// metrics checks that Patroni exports each metric that the alerts of the set-up use.
func (r *reference) metrics() {
	resp, err := r.client.Get("https://" + r.machines[0].address + ":8008/metrics")
	if err != nil {
		r.t.Error(err)
		return
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Error(err)
	}
	named := regexp.MustCompile(`\bpatroni_\w+`).FindAllString(r.read("patroni.rules.yaml"), -1)
	if len(named) < 5 {
		r.t.Errorf("the alerts name %d metrics", len(named))
	}
	for _, name := range named {
		if !bytes.Contains(text, []byte("\n"+name+"{scope=")) {
			r.t.Errorf("Patroni has no metric %s with a scope", name)
		}
	}
}

// caches checks that nginx, configured as in the set-up, serves the status lists unchanged.
func (x *run) caches(r *reference) {
	m := r.machines[2]
	front := nettest.For(x.t)
	settings := strings.NewReplacer("10.0.0.21:8414", x.replicas[0].address, "10.0.0.22:8414", x.replicas[1].address,
		"10.0.0.20:8480", front, "/var/cache/nginx", m.dir).Replace(r.read("status-lists.nginx.conf"))
	m.write("nginx.conf", fmt.Sprintf("daemon off; pid %[1]s/nginx.master; error_log %[1]s/nginx.error;\n"+
		"events {}\nhttp { access_log off; client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy;\n"+
		"fastcgi_temp_path %[1]s/fastcgi; uwsgi_temp_path %[1]s/uwsgi; scgi_temp_path %[1]s/scgi;\n%[2]s}\n",
		m.dir, settings))
	m.start(nil, "/usr/sbin/nginx", "-e", filepath.Join(m.dir, "nginx.error"), "-c", filepath.Join(m.dir, "nginx.conf"))
	get := func(host string) (status int, cached string, body []byte) {
		req, err := http.NewRequest(http.MethodGet, "http://"+host+"/status/0", nil)
		if err != nil {
			x.t.Fatal(err)
		}
		req.Host = x.host
		resp, err := x.http.Do(req)
		if err != nil {
			return 0, err.Error(), nil
		}
		defer resp.Body.Close()
		body, err = io.ReadAll(resp.Body)
		if err != nil {
			x.t.Error(err)
		}
		return resp.StatusCode, resp.Header.Get("X-Cache-Status"), body
	}
	var last string
	if !within(patience, func() bool {
		_, _, fresh := get(x.replicas[0].address)
		status, cached, body := get(front)
		last = fmt.Sprintf("%d %s, %d bytes, of the server %d", status, cached, len(body), len(fresh))
		return status == http.StatusOK && cached == "HIT" && bytes.Equal(body, fresh)
	}) {
		x.t.Errorf("the cache does not answer for a status list: %s", last)
	}
}

// bounces checks that PgBouncer connects to the database that accepts writes.
func (x *run) bounces(r *reference) {
	cmd := exec.Command(x.binary, "user", "add", "bounced", "--password-stdin", "--config", x.config)
	cmd.Env, cmd.Stdin = append(os.Environ(), "MCP_AUTHD_DATABASE_URL="+r.bounced()), strings.NewReader(password)
	if out, err := cmd.CombinedOutput(); err != nil {
		x.t.Errorf("through PgBouncer: %v\n%s", err, out)
	}
}

// TestPatroniRules checks that the alerts fire when they must, and do not fire otherwise.
func TestPatroniRules(t *testing.T) {
	for _, args := range [][]string{
		{"check", "rules", "patroni.rules.yaml"}, {"test", "rules", "patroni.rules.test.yaml"},
	} {
		cmd := exec.Command("promtool", args...)
		cmd.Dir = shipped
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
	}
}
