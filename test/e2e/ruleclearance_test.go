package e2e

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/program"
)

// TestClearanceByRule: behind a gateway that requires no approval of everyone, an access rule makes
// some users approve each call of a tool. Others need no approval (RU-19, RS-217).
func TestClearanceByRule(t *testing.T) {
	var paid atomic.Int32
	s := mcp.NewServer(&mcp.Implementation{Name: "bank", Version: "1"}, nil)
	for _, name := range []string{"pay", "look"} {
		mcp.AddTool(s, &mcp.Tool{Name: name},
			func(_ context.Context, _ *mcp.CallToolRequest, p payment) (*mcp.CallToolResult, payment, error) {
				if name == "pay" {
					paid.Add(1)
				}
				return nil, p, nil
			})
	}
	inner := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))
	t.Cleanup(inner.Close)
	type step struct {
		name, user, tool string
		asked            int
		paid             int32
	}
	for _, tt := range []struct {
		name, rules string
		steps       []step
	}{
		{"RU-19 RS-217 only for a group",
			"[{group: contractors, all: true, approve: [pay]}, {group: staff, all: true}]", []step{
				{"a member approves", "alice", "pay", 1, 1},
				{"and does so for each call", "alice", "pay", 1, 1},
				{"another tool needs no approval", "alice", "look", 0, 0},
				{"a member of another group is not asked", "carol", "pay", 0, 1},
			}},
		{"RU-19 RS-217 for everyone except a group",
			`[{everyone: true, all: true, approve: ["p*"]}, {group: staff, all: true}]`, []step{
				{"who is in no group approves", "alice", "pay", 1, 1},
				{"a member is not asked", "carol", "pay", 0, 1},
			}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := demotest.StartGateway(t, inner.URL, "", `
scopes: [{name: bank, description: use your accounts, default: true}]
access: `+tt.rules, demotest.Options{})
			d.AddUser(t, "carol")
			for group, user := range map[string]string{"contractors": d.Username, "staff": "carol"} {
				add := exec.Command(program.Authd(t), "group", "add", group, user, "--config", d.Config)
				if out, err := add.CombinedOutput(); err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
			}
			for _, step := range tt.steps {
				before := paid.Load()
				asked, err := callAndApprove(t, d, step.user, step.tool)
				if n := paid.Load() - before; asked != step.asked || n != step.paid || err != nil {
					t.Errorf("%s: asked %d times, %d calls reached the MCP server, %v", step.name, asked, n, err)
				}
			}
		})
	}
}

// callAndApprove signs a user in and calls a tool. The user approves what is asked. It returns how
// often an approval of the call was requested.
func callAndApprove(t *testing.T, d *demotest.Demo, user, tool string) (asked int, err error) {
	t.Helper()
	steps, err := runLogin(t, demotest.NewPerson(user, d.Password), "--call", tool,
		"--args-json", `{"amount":1,"urgent":false,"to":{}}`, d.MCPURL)
	for _, said := range saidOf(steps) {
		if strings.Contains(said, "clearance:ID") {
			asked++
		}
	}
	return asked, err
}
