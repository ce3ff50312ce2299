// Package deploy tests the files of deploy/ that operators copy: proxies in front of mcp-authd, and
// the services of a compose file, which run as processes.
package deploy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
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

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/internal/testkit/certtest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/logtest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/program"
)

// front is a proxy with a server behind it.
type front struct {
	issuer  string // https://localhost with the proxy's port
	roots   string // file with the certificate
	key     string // its key
	backend string // address of the server
	log     *logtest.Buffer
	tools   *tools
}

const password = "correct horse battery staple"

// installed returns the path of a program from a Debian package. If it is missing, it skips the
// test, or fails it with CI=true.
func installed(t *testing.T, program string) string {
	t.Helper()
	for _, dir := range append(filepath.SplitList(os.Getenv("PATH")), "/usr/sbin") {
		path := filepath.Join(dir, program)
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s is not installed: test/install-deps.sh", program)
	}
	t.Skipf("%s is not installed: test/install-deps.sh", program)
	return ""
}

// newFront returns the front of a proxy that listens at an address, with a certificate that this
// process trusts.
func newFront(t *testing.T, listens, backend string) *front {
	t.Helper()
	_, port, err := net.SplitHostPort(listens)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	certtest.WritePair(t, dir, "localhost")
	f := &front{
		issuer: "https://localhost:" + port, backend: backend, log: &logtest.Buffer{},
		roots: filepath.Join(dir, "localhost.crt"), key: filepath.Join(dir, "localhost.key"),
	}
	f.trust(t)
	return f
}

// trust makes the HTTP clients of this process trust the certificate of the front. They use another
// source address than the proxy, so that the two can be distinguished.
func (f *front) trust(t *testing.T) {
	t.Helper()
	pem, err := os.ReadFile(f.roots)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}
	transport.DialContext = func(ctx context.Context, _, address string) (net.Conn, error) {
		_, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(clientAddress)}}
		return from.DialContext(ctx, "tcp4", net.JoinHostPort("127.0.0.1", port))
	}
	before := http.DefaultTransport
	http.DefaultTransport = transport
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		http.DefaultTransport = before
	})
}

// clientAddress is the source address of the tests' clients.
const clientAddress = "127.0.0.2"

// run runs a command until the end of the test. It must exit with 0, also after SIGTERM.
func (f *front) run(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	cmd.Stdout, cmd.Stderr = f.log, f.log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended; Wait returns the error
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s did not exit with 0: %v\n%s", filepath.Base(cmd.Path), err, f.log)
		}
	})
}

// serve runs mcp-authd at the backend's address, as the gateway in front of an MCP server, with one
// account.
func (f *front) serve(t *testing.T) {
	t.Helper()
	f.tools = newTools(t)
	file := filepath.Join(t.TempDir(), "mcp-authd.yaml")
	text := fmt.Sprintf(`
issuer: %[1]s
listen: %[2]s
management: {listen: ""}
data_dir: %[3]s
trusted_proxies: [127.0.0.1]
resources:
  - uri: %[1]s/mcp
    scopes: [{name: mcp, description: use it, default: true}]
    upstream: {url: %[4]s}
clients:
  - {id: robot, name: Robot, secret: %[5]s, grant_types: [client_credentials], resources: [%[1]s/mcp], scopes: [mcp]}
`, f.issuer, f.backend, t.TempDir(), f.tools.url, robotSecret)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f.run(t, exec.Command(program.Authd(t), "serve", "--config", file))
	demotest.Ready(t, f.issuer, f.log)
	add := exec.Command(program.Authd(t), "user", "add", "alice", "--password-stdin", "--config", file)
	add.Stdin = strings.NewReader(password + "\n")
	if out, err := add.CombinedOutput(); err != nil {
		t.Fatalf("user add: %v\n%s", err, out)
	}
}

const robotSecret = "robot-secret-robot-secret-robot-secret"

// bearer adds a token to each request.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// robot gets a token for a program.
func (f *front) robot(t *testing.T) bearer {
	t.Helper()
	form := url.Values{"grant_type": {"client_credentials"}, "resource": {f.issuer + "/mcp"}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.issuer+"/token",
		strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.SetBasicAuth("robot", robotSecret)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	var answer struct {
		Token string `json:"access_token"`
	}
	if err != nil || json.Unmarshal(body, &answer) != nil || answer.Token == "" {
		t.Fatalf("no token: %s %s (%v)", resp.Status, body, err)
	}
	return bearer(answer.Token)
}

// stream calls a tool that ends only after the client has its first event. A proxy that buffers the
// stream blocks the call.
func (f *front) stream(t *testing.T) {
	t.Helper()
	var once sync.Once
	c := mcp.NewClient(&mcp.Implementation{Name: "deploy", Version: "1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(context.Context, *mcp.ProgressNotificationClientRequest) {
			once.Do(func() { close(f.tools.arrived) })
		},
	})
	session, err := c.Connect(t.Context(), &mcp.StreamableClientTransport{
		Endpoint: f.issuer + "/mcp", HTTPClient: &http.Client{Transport: f.robot(t)},
	}, nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, f.log)
	}
	defer session.Close()
	call := &mcp.CallToolParams{Name: "wait"}
	call.SetProgressToken("first")
	result, err := session.CallTool(t.Context(), call)
	if err != nil || result.IsError {
		t.Errorf("DL-04: the first event of a stream is held back: %v %v\n%s", result, err, f.log)
	}
}

// tools is an MCP server without sign-in.
type tools struct {
	url     string
	arrived chan struct{} // closed when the client has the first event
}

func newTools(t *testing.T) *tools {
	t.Helper()
	w := &tools{arrived: make(chan struct{})}
	s := mcp.NewServer(&mcp.Implementation{Name: "inner", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "wait"},
		func(ctx context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
			token := r.Params.GetProgressToken()
			err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: 1})
			if err != nil {
				return nil, nil, err
			}
			select {
			case <-w.arrived:
				return nil, map[string]bool{"arrived": true}, nil
			case <-time.After(2 * time.Minute):
				return nil, nil, fmt.Errorf("the event did not arrive within two minutes")
			}
		})
	server := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))
	t.Cleanup(func() { // open streams would block it
		server.CloseClientConnections()
		server.Close()
	})
	w.url = server.URL + "/mcp"
	return w
}
