//go:build release

package chart

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/logtest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/nettest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/pgtest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/program"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

// node runs containers of rendered pods as processes, with their args, environment, files and
// probes.
type node struct {
	t       *testing.T
	dir     string            // has /etc/mcp-authd, /run/secrets and /data
	ports   map[string]string // address of each port such as :8414
	secrets map[string]string // by Secret and key, such as mcp-authd/secret_key
	binary  string
	log     logtest.Buffer
}

func newNode(t *testing.T, secrets map[string]string) *node {
	t.Helper()
	dir, err := os.MkdirTemp("", "mcp-authd-node-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	n := &node{
		t: t, dir: dir, secrets: secrets, binary: filepath.Join(dir, "mcp-authd"),
		ports: map[string]string{":8414": nettest.For(t), ":9414": nettest.For(t)},
	}
	program, err := os.ReadFile(program.Authd(t))
	if err == nil {
		err = os.WriteFile(n.binary, program, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// pod returns the pod of the only object of a kind.
func pod(t *testing.T, all []object, kind string) any {
	t.Helper()
	for _, o := range all {
		if o["kind"] == kind {
			return at(o, "spec", "template", "spec")
		}
	}
	t.Fatalf("there is no %s", kind)
	return nil
}

// mount creates the files of a pod with their owners and modes. Those of volumes belong to root and
// the group fsGroup.
func (n *node) mount(all []object, pod any) {
	n.t.Helper()
	group, _ := at(pod, "securityContext", "fsGroup").(int)
	write := func(path, text string, mode os.FileMode) {
		n.t.Helper()
		path = filepath.Join(n.dir, path)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if err == nil {
			err = os.WriteFile(path, []byte(text), mode)
		}
		if err == nil && os.Getuid() == 0 {
			err = os.Chown(path, 0, group)
		}
		if err != nil {
			n.t.Fatal(err)
		}
	}
	for _, o := range all {
		if o["kind"] == "ConfigMap" {
			write("/etc/mcp-authd/config.yaml", n.here(fmt.Sprint(at(o, "data", "config.yaml"))), 0o644)
		}
	}
	for _, v := range list(pod, "volumes") {
		for _, s := range list(v, "projected", "sources") {
			for _, item := range list(s, "secret", "items") {
				ref := fmt.Sprintf("%s/%s", at(s, "secret", "name"), at(item, "key"))
				value, ok := n.secrets[ref]
				if !ok {
					n.t.Fatalf("the pod wants a Secret that there is not: %s", ref)
				}
				write("/run/secrets/mcp-authd/"+fmt.Sprint(at(item, "path")), value, os.FileMode(
					at(v, "projected", "defaultMode").(int)))
			}
		}
	}
	data := filepath.Join(n.dir, "data")
	err := os.MkdirAll(data, 0o770)
	if err == nil && os.Getuid() == 0 {
		err = os.Chown(data, 0, group)
	}
	if err == nil {
		err = os.Chmod(data, 0o2770) // the mode that fsGroup sets
	}
	if err == nil {
		err = os.Chmod(n.dir, 0o755)
	}
	if err != nil {
		n.t.Fatal(err)
	}
}

var inPod = regexp.MustCompile(`(/etc/mcp-authd|/run/secrets|/data)\b`)

// here replaces the paths and ports of a pod with those on this machine.
func (n *node) here(text string) string {
	text = inPod.ReplaceAllString(text, n.dir+"$1")
	for port, address := range n.ports {
		text = strings.ReplaceAll(text, port, address)
	}
	return text
}

// command returns a container as a process. It has the container's args unless others are given,
// its environment and, if the test runs as root, its user.
func (n *node) command(pod, container any, args ...string) *exec.Cmd {
	n.t.Helper()
	if args == nil {
		for _, a := range list(container, "args") {
			args = append(args, n.here(fmt.Sprint(a)))
		}
	}
	cmd := exec.Command(n.binary, args...)
	cmd.Dir = "/"
	// From the image and from the kubelet.
	cmd.Env = []string{
		"PATH=/usr/bin", "MCP_AUTHD_DATA_DIR=" + filepath.Join(n.dir, "data"),
		"MCP_AUTHD_LISTEN=" + n.ports[":8414"], "KUBERNETES_SERVICE_HOST=10.0.0.1",
	}
	for _, e := range list(container, "env") {
		value := at(e, "value")
		if at(e, "valueFrom", "fieldRef", "fieldPath") == "metadata.name" {
			value = "mcp-authd-0"
		}
		cmd.Env = append(cmd.Env, fmt.Sprintf("%s=%s", at(e, "name"), n.here(fmt.Sprint(value))))
	}
	user, _ := at(container, "securityContext", "runAsUser").(int)
	if user == 0 {
		user, _ = at(pod, "securityContext", "runAsUser").(int)
	}
	if os.Getuid() == 0 {
		group, _ := at(pod, "securityContext", "fsGroup").(int)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{
			Uid: uint32(user), Gid: uint32(user), Groups: []uint32{uint32(group)},
		}}
	}
	cmd.Stdout, cmd.Stderr = &n.log, &n.log
	return cmd
}

// start runs a container until the end of the test, and waits for each of its probes.
func (n *node) start(pod, container any) {
	n.t.Helper()
	cmd := n.command(pod, container)
	if err := cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended; Wait returns the error
		if err := cmd.Wait(); err != nil {
			n.t.Errorf("DL-04: the container did not exit with 0: %v\n%s", err, &n.log)
		}
	})
	for _, probe := range []string{"startupProbe", "livenessProbe", "readinessProbe"} {
		get := at(container, probe, "httpGet")
		var port string
		for _, p := range list(container, "ports") {
			if at(p, "name") == at(get, "port") {
				port = fmt.Sprintf(":%v", at(p, "containerPort"))
			}
		}
		if n.ports[port] == "" {
			n.t.Fatalf("DL-04: the port of the %s is none of the container: %v", probe, get)
		}
		n.answers(probe, "http://"+n.ports[port]+fmt.Sprint(at(get, "path")))
	}
}

// answers waits for a response that a kubelet accepts.
func (n *node) answers(what, to string) {
	n.t.Helper()
	err := wait.Retry(wait.Bound, func() error {
		resp, err := http.Get(to)
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode >= 400 {
				err = errors.New(resp.Status)
			}
		}
		return err
	})
	if err != nil {
		n.t.Fatalf("DL-04: the %s at %s: %v\n%s", what, to, err, &n.log)
	}
}

// signIn creates an account like "kubectl exec", and signs its user in to the MCP server.
func (n *node) signIn(pod, container any, more ...string) {
	n.t.Helper()
	const password = "correct horse battery staple"
	add := n.command(pod, container, append([]string{"user", "add", "alice", "--password-stdin"}, more...)...)
	add.Stdin = strings.NewReader(password + "\n")
	if err := add.Run(); err != nil {
		n.t.Fatalf("DL-04: user add: %v\n%s", err, &n.log)
	}
	demotest.Login(n.t, demotest.NewPerson("alice", password), "http://"+n.ports[":8414"]+"/mcp")
}

// upstream starts an MCP server without sign-in.
func upstream(t *testing.T) string {
	t.Helper()
	s := mcp.NewServer(&mcp.Implementation{Name: "inner", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "look"},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return nil, map[string]bool{"ok": true}, nil
		})
	server := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))
	t.Cleanup(func() { // open streams would block it
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL + "/mcp"
}

// install renders the chart for a node.
func (n *node) install(t *testing.T, args ...string) []object {
	t.Helper()
	issuer := "http://" + n.ports[":8414"]
	args = append(args, "--set", "config.issuer="+issuer, "--set", "config.resources[0].uri="+issuer+"/mcp",
		"--set", "config.resources[0].upstream.url="+upstream(t))
	return objects(t, strings.NewReader(template(t, chartDir, args...)))
}

// TestRunSQLite checks that the chart's pod for SQLite starts, answers its probes, and signs in a
// user (DL-04).
func TestRunSQLite(t *testing.T) {
	n := newNode(t, map[string]string{"mcp-authd/secret_key": strings.Repeat("k", 40)})
	all := n.install(t, "--set", "secrets.secret_key.name=mcp-authd", "--set", "secrets.secret_key.key=secret_key")
	p := pod(t, all, "StatefulSet")
	n.mount(all, p)
	c := at(p, "containers", 0)
	n.start(p, c)
	n.signIn(p, c, "--config", filepath.Join(n.dir, "/etc/mcp-authd/config.yaml"))
}

// TestRunPostgres checks that the migration job needs only the URL of the database, and that the
// chart's pod for PostgreSQL signs in a user (DL-04).
func TestRunPostgres(t *testing.T) {
	n := newNode(t, map[string]string{
		"mcp-authd/secret_key":   strings.Repeat("k", 40) + "\n",
		"mcp-authd/database_url": pgtest.Start(t).Database(t) + "\n",
	})
	values := filepath.Join(t.TempDir(), "values.yaml")
	err := os.WriteFile(values, []byte(`
database: {type: postgres}
replicas: 2
secrets:
  secret_key: {name: mcp-authd, key: secret_key}
  database.url: {name: mcp-authd, key: database_url}
`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	all := n.install(t, "--values", values)
	job := pod(t, all, "Job")
	for _, v := range list(job, "volumes") {
		if sources := list(v, "projected", "sources"); len(sources) != 1 {
			t.Errorf("DL-04: the migration has %d secrets, and needs one", len(sources))
		}
	}
	n.mount(nil, job)
	if err := n.command(job, at(job, "containers", 0)).Run(); err != nil {
		t.Fatalf("DL-04: the migration: %v\n%s", err, &n.log)
	}
	p := pod(t, all, "Deployment")
	n.mount(all, p)
	c := at(p, "containers", 0)
	n.start(p, c)
	n.signIn(p, c, "--config", filepath.Join(n.dir, "/etc/mcp-authd/config.yaml"))
}

// TestRunSidecar checks that a user can sign in to the MCP server of a pod through the container of
// the library chart (DL-04).
func TestRunSidecar(t *testing.T) {
	n := newNode(t, nil)
	all := objects(t, strings.NewReader(template(t, notes(t), "--set", "url=http://"+n.ports[":8414"])))
	p := pod(t, all, "StatefulSet")
	n.mount(all, p)
	c := at(p, "containers", 1).(object)
	for i, a := range list(c, "args") {
		if a == "http://127.0.0.1:3000/mcp" {
			c["args"].([]any)[i] = upstream(t)
		}
	}
	n.start(p, c)
	n.signIn(p, c, "--data", filepath.Join(n.dir, "data"))
}
