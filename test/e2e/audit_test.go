package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/audit/verify"
	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/program"
)

// lookServer starts an MCP server with one tool.
func lookServer(t *testing.T) *httptest.Server {
	t.Helper()
	s := mcp.NewServer(&mcp.Implementation{Name: "inner", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "look"},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return nil, map[string]bool{"ok": true}, nil
		})
	server := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))
	t.Cleanup(server.Close)
	return server
}

// audited runs a command about the audit log of an installation.
func audited(t *testing.T, data string, args ...string) string {
	t.Helper()
	cmd := exec.Command(program.Authd(t), append(append([]string{"audit"}, args...), "--data", data)...)
	var failed strings.Builder
	cmd.Stderr = &failed
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v %s", args, err, &failed)
	}
	return string(out)
}

// TestAuditProof: OB-05. It proves that a tool call through the gateway was allowed by its user.
// The check runs in a separate program that contains only the verifier and has the key.
func TestAuditProof(t *testing.T) {
	data := t.TempDir()
	p := protect(t, "--data", data, lookServer(t).URL+"/mcp")
	if steps, err := runLogin(t, demotest.NewPerson(p.Username, p.Password), "--call", "look", p.MCPURL); err != nil {
		t.Fatalf("%v: %v", steps, err)
	}
	p.stop(t)
	var calls []struct {
		Index                        int64
		Grant, Person, Tool, Outcome string
	}
	listed := audited(t, data, "list", "--event", "tool.called", "--json")
	if err := json.Unmarshal([]byte(listed), &calls); err != nil || len(calls) != 1 || calls[0].Tool != "look" ||
		calls[0].Outcome != "ok" || calls[0].Grant == "" || calls[0].Person == "" {
		t.Fatalf("got %v %s", err, listed)
	}
	shown := audited(t, data, "show", fmt.Sprint(calls[0].Index))
	if want := calls[0].Person + " (" + p.Username + ")"; !strings.Contains(shown, want) {
		t.Errorf("OB-05: the entry does not name %s: %s", want, shown)
	}
	if lines := audited(t, data, "list", "--event", "tool.called"); !strings.Contains(lines,
		p.Username+" ("+calls[0].Person+")") {
		t.Errorf("OB-05: the list does not name %s: %s", p.Username, lines)
	}
	proof := audited(t, data, "prove", fmt.Sprint(calls[0].Index), "--json")
	key := strings.TrimSpace(audited(t, data, "checkpoint", "--key"))

	checker := program.Build(t, ".", "./examples/auditverify")
	check := func(input string, args ...string) (string, error) {
		cmd := exec.Command(checker, append([]string{"-key", key}, args...)...)
		cmd.Stdin = strings.NewReader(input)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	t.Run("OB-05 the proof goes from the consent over the token to the call", func(t *testing.T) {
		out, err := check(proof, "-proof")
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		lines := strings.Split(strings.TrimSpace(out), "\n")
		if len(lines) != 3 {
			t.Fatalf("got %s", out)
		}
		for i, event := range []string{"consent.approved", "token.issued", "tool.called"} {
			if !strings.Contains(lines[i], event) || !strings.Contains(lines[i], calls[0].Grant) {
				t.Errorf("entry %d of the proof is %s, want %s of %s", i, lines[i], event, calls[0].Grant)
			}
		}
	})
	t.Run("OB-05 a proof in which the person is another one is refused", func(t *testing.T) {
		out, err := check(strings.ReplaceAll(proof, calls[0].Person, "usr_0"), "-proof")
		if err == nil || !strings.Contains(out, "is not in the log of the checkpoint") {
			t.Errorf("got %v: %s", err, out)
		}
	})
	t.Run("OB-04 the exported log is whole, and a change of it is found", func(t *testing.T) {
		exported := audited(t, data, "export")
		if out, err := check(exported); err != nil || !strings.Contains(out, "entries") {
			t.Errorf("got %v: %s", err, out)
		}
		changed := strings.Replace(exported, `\"tool\":\"look\"`, `\"tool\":\"read\"`, 1)
		if changed == exported {
			t.Fatalf("the call is not in %s", exported)
		}
		if out, err := check(changed); err == nil || !strings.Contains(out, "has signed") {
			t.Errorf("got %v: %s", err, out)
		}
	})
	t.Run("OB-04 the key of another log says nothing about it", func(t *testing.T) {
		var p verify.Proof
		if err := json.NewDecoder(bytes.NewReader([]byte(proof))).Decode(&p); err != nil {
			t.Fatal(err)
		}
		other := "other.example/audit" + key[strings.Index(key, "+"):]
		if _, err := p.Open(other); err == nil {
			t.Error("the proof is believed")
		}
	})
}
