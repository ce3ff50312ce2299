package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/nettest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/program"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

// elsewhereServer runs examples/nethttp: an MCP server in a separate process, with the credentials
// for reports.
func elsewhereServer(t *testing.T, address, issuer, client, secret string) {
	t.Helper()
	bin, file := program.Build(t, ".", "./examples/nethttp"), filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(bin, "-listen", address, "-issuer", issuer, "-client", client, "-secret", file)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	wait.Success(t, "the MCP server answers", func() error {
		resp, err := http.Get("http://" + address + "/mcp")
		if err == nil {
			resp.Body.Close()
		}
		return err
	})
}

// known waits until a server announces a resource that a command has added.
func known(t *testing.T, issuer, resource string) {
	t.Helper()
	wait.Success(t, "the server knows the resource", func() error {
		resp, err := http.Get(issuer + "/.well-known/oauth-authorization-server")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err == nil && !strings.Contains(string(body), resource) {
			err = fmt.Errorf("%s is not in %s", resource, body)
		}
		return err
	})
}

// TestReportsOfAnotherProcess: a server and an MCP server run in two processes. Refusals of the MCP
// server are found by their reference, and the approval of a tool call is proved.
func TestReportsOfAnotherProcess(t *testing.T) {
	address := nettest.For(t)
	mcpURL := "http://" + address + "/mcp"
	d := demotest.StartGateway(t, lookServer(t).URL+"/mcp", "",
		"scopes: [{name: mcp, description: use it, default: true}]", demotest.Options{})
	command := func(args ...string) string {
		t.Helper()
		out, err := exec.Command(program.Authd(t), append(args, "--config", d.Config)...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	eventually := func(want string, args ...string) (out string) {
		t.Helper()
		wait.Success(t, "the server has what was reported", func() error {
			all, err := exec.Command(program.Authd(t), append(args, "--config", d.Config)...).CombinedOutput()
			if out = string(all); err == nil && !strings.Contains(out, want) {
				err = fmt.Errorf("%s is not there", want)
			}
			if err != nil {
				err = fmt.Errorf("%v: %w\n%s", args, err, out)
			}
			return err
		})
		return out
	}
	command("resource", "add", mcpURL, "--scope", "mcp=use it", "--scope", "admin=change it")
	var client struct {
		ID     string `json:"id"`
		Secret string `json:"secret"`
	}
	added := command("client", "add", "--name", "Notes server", "--grant", "client_credentials", "--resource", mcpURL,
		"--json")
	if err := json.Unmarshal([]byte(added), &client); err != nil || client.Secret == "" {
		t.Fatalf("%v: %s", err, added)
	}
	known(t, d.Issuer, mcpURL)
	elsewhereServer(t, address, d.Issuer, client.ID, client.Secret)
	if steps, err := runLogin(t, demotest.NewPerson(d.Username, d.Password), "--call", "whoami", mcpURL); err != nil {
		t.Fatalf("%v: %v", steps, err)
	}
	t.Run("OB-02 a refusal there has a reference here, with its verdict", func(t *testing.T) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, mcpURL,
			strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer of-another-server")
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		reference := resp.Header.Get("X-Request-Id")
		if resp.StatusCode != http.StatusUnauthorized || len(reference) != 12 {
			t.Fatalf("got %d with the reference %q", resp.StatusCode, reference)
		}
		eventually(reference, "attempt", "list", "--reference", reference)
		if out := command("attempt", "explain", reference); !strings.Contains(out, "token_foreign") {
			t.Errorf("OB-01: got %s", out)
		}
		if out := command("attempt", "show", reference); !strings.Contains(out, client.ID) {
			t.Errorf("OB-02: it does not say who has reported it: %s", out)
		}
	})
	t.Run("OB-05 a call there is walked to its consent", func(t *testing.T) {
		listed := eventually(`"whoami"`, "audit", "list", "--event", "tool.called", "--json")
		var calls []struct {
			Index        int64
			Tool, Person string
		}
		if err := json.Unmarshal([]byte(listed), &calls); err != nil || len(calls) != 1 || calls[0].Person == "" {
			t.Fatalf("%v: %s", err, listed)
		}
		proof := command("audit", "prove", fmt.Sprint(calls[0].Index))
		for _, want := range []string{"consent.approved", "token.issued", "tool.called"} {
			if !strings.Contains(proof, want) {
				t.Errorf("OB-05: the proof has no %q: %s", want, proof)
			}
		}
		if out := command("audit", "show", fmt.Sprint(calls[0].Index)); !strings.Contains(out, client.ID) {
			t.Errorf("OB-05: it does not say who has reported it: %s", out)
		}
	})
	t.Run("OB-01 the attempt goes to the first call there, without a fault", func(t *testing.T) {
		out := command("attempt", "list", "--json")
		if !strings.Contains(out, mcpURL) || !strings.Contains(out, `"ok": true`) {
			t.Errorf("got %s", out)
		}
	})
}
