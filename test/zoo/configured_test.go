package zoo

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/logtest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/nettest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/program"
)

// configured repeats the test of the others for an operator's client. The demo takes no clients
// from its configuration, so this runs a server. With id and secret in the configuration, the
// client survives the loss of the database.
func (r *replay) configured(t *testing.T) {
	data := t.TempDir()
	address := nettest.For(t)
	s := server{
		issuer: "http://" + address, mcp: "http://" + address + "/mcp", username: "alice",
		password: "correct horse battery",
	}
	r.clientID, r.secret = "claude-connector", "a-secret-that-the-operator-chose-0001"
	env := append(os.Environ(),
		"MCP_AUTHD_ISSUER="+s.issuer, "MCP_AUTHD_LISTEN="+address, "MCP_AUTHD_MANAGEMENT_LISTEN=127.0.0.1:0",
		"MCP_AUTHD_DATA_DIR="+data,
		"MCP_AUTHD_RESOURCES_0_URI="+s.mcp, "MCP_AUTHD_RESOURCES_0_NAME=Notes",
		"MCP_AUTHD_RESOURCES_0_SCOPES_0_NAME=mcp", "MCP_AUTHD_RESOURCES_0_SCOPES_0_DEFAULT=true",
		"MCP_AUTHD_CLIENTS_0_ID="+r.clientID, "MCP_AUTHD_CLIENTS_0_SECRET="+r.secret,
		"MCP_AUTHD_CLIENTS_0_REDIRECT_URIS="+r.RedirectURI,
		"MCP_AUTHD_CLIENTS_0_AUTH_METHOD=client_secret_basic",
	)
	stop := serve(t, s, env)
	addUser(t, s, env)
	r.signIn(t, s)
	r.exchange(t, s)
	stop()
	if err := os.Remove(filepath.Join(data, "mcp-authd.db")); err != nil {
		t.Fatal(err)
	}
	serve(t, s, env)
	addUser(t, s, env) // users are lost with the database
	r.deadRefresh(t, s)
	r.signIn(t, s)
	r.exchange(t, s)
}

func addUser(t *testing.T, s server, env []string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program.Authd(t), "user", "add", s.username, "--password-stdin")
	cmd.Env, cmd.Stdin = env, strings.NewReader(s.password+"\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("user add: %v\n%s", err, out)
	}
}

// serve runs the server until stop is called or the test ends.
func serve(t *testing.T, s server, env []string) (stop func()) {
	t.Helper()
	var log logtest.Buffer
	cmd := exec.Command(program.Authd(t), "serve")
	cmd.Env, cmd.Stderr = env, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended; Wait returns the error
		if err := cmd.Wait(); err != nil {
			t.Errorf("serve: %v\n%s", err, log.String())
		}
	}
	t.Cleanup(stop)
	demotest.Ready(t, s.issuer, &log)
	return stop
}
