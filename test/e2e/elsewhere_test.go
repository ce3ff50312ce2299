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
	"time"

	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/nettest"
)

// elsewhereServer is examples/nethttp: an MCP server in a process of its own, with what it needs to report.
func elsewhereServer(t *testing.T, address, issuer, client, secret string) {
	t.Helper()
	bin, file := filepath.Join(t.TempDir(), "nethttp"), filepath.Join(t.TempDir(), "secret")
	if out, err := exec.Command("go", "build", "-o", bin, "../../examples/nethttp").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
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
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if resp, err := http.Get("http://" + address + "/mcp"); err == nil {
			resp.Body.Close()
			return
		}
		if time.Now().After(end) {
			t.Fatal("the MCP server did not get ready in a minute")
		}
	}
}

// known waits until a server tells of a resource that a command has added.
func known(t *testing.T, issuer, resource string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		resp, err := http.Get(issuer + "/.well-known/oauth-authorization-server")
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if strings.Contains(string(body), resource) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the server does not know %s: %s", resource, body)
		}
	}
}

// TestReportsOfAnotherProcess: a server and an MCP server in two processes. What the MCP server refuses is found
// by its reference, and who allowed a call of its tool is proved.
func TestReportsOfAnotherProcess(t *testing.T) {
	address := nettest.For(t)
	mcpURL := "http://" + address + "/mcp"
	d := demotest.StartGateway(t, lookServer(t).URL+"/mcp", "",
		"scopes: [{name: mcp, description: use it, default: true}]", demotest.Options{})
	command := func(args ...string) string {
		t.Helper()
		out, err := exec.Command(demotest.Binary(t), append(args, "--config", d.Config)...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	eventually := func(what, want string, args ...string) string {
		t.Helper()
		for end := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
			out, err := exec.Command(demotest.Binary(t), append(args, "--config", d.Config)...).CombinedOutput()
			if err == nil && strings.Contains(string(out), want) {
				return string(out)
			}
			if time.Now().After(end) {
				t.Fatalf("%s: %v\n%s", what, err, out)
			}
		}
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
		eventually("OB-02", reference, "attempt", "list", "--reference", reference)
		if out := command("attempt", "explain", reference); !strings.Contains(out, "token_foreign") {
			t.Errorf("OB-01: got %s", out)
		}
		if out := command("attempt", "show", reference); !strings.Contains(out, client.ID) {
			t.Errorf("OB-02: it does not say who has reported it: %s", out)
		}
	})
	t.Run("OB-05 a call there is walked to its consent", func(t *testing.T) {
		listed := eventually("OB-05", `"whoami"`, "audit", "list", "--event", "tool.called", "--json")
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
