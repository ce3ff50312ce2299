package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
)

// payment holds the arguments of the bank's tools.
type payment struct {
	Amount float64        `json:"amount"`
	Urgent bool           `json:"urgent"`
	To     map[string]any `json:"to"`
	Tags   []string       `json:"tags,omitempty"`
	Note   string         `json:"note,omitempty"`
}

// newBank starts a gateway in front of an MCP server with the tools pay and order. Each requires a
// scope. pay also requires the approval of its user, and order the approval of Olga.
func newBank(t *testing.T) (d *demotest.Demo, olga *demotest.Person) {
	t.Helper()
	s := mcp.NewServer(&mcp.Implementation{Name: "bank", Version: "1"}, nil)
	for _, name := range []string{"pay", "order"} {
		mcp.AddTool(s, &mcp.Tool{Name: name},
			func(_ context.Context, _ *mcp.CallToolRequest, p payment) (*mcp.CallToolResult, payment, error) {
				return nil, p, nil
			})
	}
	inner := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))
	t.Cleanup(inner.Close)
	d = demotest.StartGateway(t, inner.URL, "", `
scopes:
  - {name: bank, description: see your accounts, default: true}
  - {name: payments, description: make payments}
tools:
  - {name: pay, scopes: [payments], clearance: {by: person, when: "arguments.amount > 100"}}
  - {name: order, scopes: [payments], clearance: {by: other, approvers: [olga]}}`, demotest.Options{})
	return d, d.AddUser(t, "olga")
}

// saidOf describes the step-ups among steps.
func saidOf(steps []map[string]any) (said []string) {
	for _, s := range steps {
		if scopes, ok := s["need_scope"].([]any); ok {
			said = append(said, clearanceScope.ReplaceAllString(fmt.Sprint(scopes...), "clearance:ID"))
		}
	}
	return said
}

var clearanceScope = regexp.MustCompile(`clearance:clr_\S+`)

func result(t *testing.T, steps []map[string]any) string {
	t.Helper()
	if len(steps) == 0 {
		t.Fatal("there is no step")
	}
	b, err := json.Marshal(steps[len(steps)-1]["result"])
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestLoginWithClearance: login calls a tool that requires a scope and a tool call approval.
func TestLoginWithClearance(t *testing.T) {
	d, olga := newBank(t)
	large := []string{
		"--arg", "amount=250", "--arg", "urgent=true", "--arg", `to={"name":"Bob"}`, "--arg", "note=7", d.MCPURL,
	}
	const paid = `{"amount":250,"note":"7","to":{"name":"Bob"},"urgent":true}`
	t.Run("CL-20 RS-217: it steps up for the scope, and for the clearance", func(t *testing.T) {
		p := d.Person()
		steps, err := runLogin(t, p, append([]string{"--call", "pay"}, large...)...)
		said := saidOf(steps)
		if err != nil || len(said) != 2 || !strings.Contains(said[0], "payments") ||
			strings.Contains(said[0], "clearance") || !strings.Contains(said[1], "clearance:ID") {
			t.Fatalf("got %v, %v, %v", said, steps, err)
		}
		if got := result(t, steps); got != paid {
			t.Errorf("got %s", got)
		}
	})
	t.Run("CL-20: arguments as one object, and a call that needs the scope alone", func(t *testing.T) {
		steps, err := runLogin(t, d.Person(), "--call", "pay",
			"--args-json", `{"amount": 100, "urgent": false, "to": {}}`, "--arg", `tags=["a"]`, d.MCPURL)
		if said := saidOf(steps); err != nil || len(said) != 1 {
			t.Fatalf("got %v, %v, %v", said, steps, err)
		}
		if got := result(t, steps); got != `{"amount":100,"tags":["a"],"to":{},"urgent":false}` {
			t.Errorf("got %s", got)
		}
	})
	t.Run("an argument that the tool cannot take is told before the call", func(t *testing.T) {
		steps, err := runLogin(t, d.Person(), "--scope", "bank,payments", "--call", "pay", "--arg", "amount=much",
			d.MCPURL)
		last := steps[len(steps)-1]
		if err == nil || last["error"] != `the argument amount must be JSON of type number, not "much"` {
			t.Errorf("got %v, %v", last, err)
		}
	})
	// The approver opens the link that the command prints while it waits.
	for _, tt := range []struct {
		name, tool, flag string
		of               func(*demotest.Person) func(step map[string]any) error
		who              *demotest.Person
	}{
		{"RS-217: it waits for another person, whom its own has seen named", "order", "--no-browser", visits, olga},
		{"RS-217: with a code for a device, the person opens the link", "pay", "--device", types, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := d.Person()
			decides, told := tt.who, 0
			if decides == nil {
				decides = p
			}
			signsIn := tt.of(p)
			steps, err := runSteps(t, func(step map[string]any) error {
				text, _ := step["waits"].(string)
				link := clearanceLink.FindStringSubmatch(text)
				if link == nil {
					return signsIn(step)
				}
				told++
				return decides.Answer(link[1])
			}, append([]string{tt.flag, "--call", tt.tool}, large...)...)
			if err != nil || told != 1 || result(t, steps) != paid {
				t.Errorf("told %d times, %v, %v", told, steps, err)
			}
		})
	}
	t.Run("RS-217: a denial is told in the words of the MCP server", func(t *testing.T) {
		no := demotest.NewPerson("olga", d.Password)
		no.Decision = "deny"
		signsIn := visits(d.Person())
		steps, err := runSteps(t, func(step map[string]any) error {
			text, _ := step["waits"].(string)
			if link := clearanceLink.FindStringSubmatch(text); link != nil {
				return no.Answer(link[1])
			}
			return signsIn(step)
		}, append([]string{"--no-browser", "--call", "order"}, large...)...)
		last := steps[len(steps)-1]
		if said, _ := last["error"].(string); err == nil || !strings.Contains(said, "by the person who was asked") {
			t.Errorf("got %v, %v", last, err)
		}
	})
}
