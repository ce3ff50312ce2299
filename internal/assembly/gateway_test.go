package assembly

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/mcpresource"
	"github.com/mcp-authd/mcp-authd/storage"
)

// TestRecordCall: a caller writes no megabytes into the log, and what has a line of its own
// for each call gets no second one.
func TestRecordCall(t *testing.T) {
	var log bytes.Buffer
	a := Parts{Log: slog.New(slog.NewJSONHandler(&log, nil))}
	record := a.recordCall("https://mcp.example.com/mcp")
	record(mcpresource.Event{
		Outcome: "insufficient_scope", Operations: []mcpresource.Operation{{Method: "tools/call", Name: "x"}},
	})
	if log.Len() > 0 {
		t.Errorf("a call is logged twice: %s", log.String())
	}
	record(mcpresource.Event{
		Outcome: "malformed", RemoteAddr: "192.0.2.7:1234", Err: errors.New(strings.Repeat("x", 1<<20)),
	})
	if log.Len() > 2000 || !strings.Contains(log.String(), `"outcome":"malformed","remote":"192.0.2.7"`) {
		t.Errorf("one refusal is %d bytes of log: %.300s", log.Len(), log.String())
	}
}

// TestSharesOrigin: Security M6. What is at the root of the origin is not said to be the gateway's MCP server.
func TestSharesOrigin(t *testing.T) {
	const origin = "https://mcp.example.com"
	for other, want := range map[string]bool{
		origin: true, origin + "/b": true, "https://other.example.com/mcp": false,
	} {
		a := Parts{Config: &config.Loaded{Config: &config.Config{}}}
		a.Config.Resources = []config.Resource{{URI: origin + "/mcp"}}
		mine := &a.Config.Resources[0]
		if a.sharesOrigin(mine, []storage.Resource{{URI: mine.URI}}) {
			t.Error("it shares the origin with itself")
		}
		if got := a.sharesOrigin(mine, []storage.Resource{{URI: other}}); got != want {
			t.Errorf("beside %s of the database: got %t", other, got)
		}
		a.Config.Resources = append(a.Config.Resources, config.Resource{URI: other})
		if got := a.sharesOrigin(&a.Config.Resources[0], nil); got != want {
			t.Errorf("beside %s: got %t", other, got)
		}
	}
}

type someIssuer struct{ mcpresource.Introspector }

func (someIssuer) Issuer() string { return "https://auth.example.com" }

// TestSessionsOfUpstream: RS-112. The operator says whether sessions belong to the application as well.
func TestSessionsOfUpstream(t *testing.T) {
	a := Parts{Log: slog.New(slog.DiscardHandler), Config: &config.Loaded{Config: &config.Config{}}}
	for key, shared := range map[string]bool{"": true, "person": true, "client": false} {
		r := &config.Resource{URI: "https://mcp.example.com/mcp", Upstream: config.Upstream{Sessions: key}}
		g, err := a.guard(someIssuer{}, r, false, common{mcpresource.NewBodies(memory), new(lastCalls), nil, nil})
		if err != nil {
			t.Fatal(err)
		}
		owner := func(client string) string {
			return g.Owner(&mcpresource.Principal{
				Issuer: "https://auth.example.com", Subject: "alice", ClientID: client,
			})
		}
		if got := owner("first") == owner("second"); got != shared {
			t.Errorf("sessions: %q: two applications of a person share a session: %v", key, got)
		}
	}
}

// TestCallsPerSecond: RS-189. A negative calls_per_second is no limit; without one there is the default.
func TestCallsPerSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 2000 // more than the guard's default allows at once
		a := Parts{Log: slog.New(slog.DiscardHandler), Config: &config.Loaded{Config: &config.Config{}}}
		alice := &mcpresource.Principal{Issuer: "https://auth.example.com", Subject: "alice", ClientID: "app"}
		ctx := mcpresource.NewContext(t.Context(), alice)
		for configured, want := range map[int]int{0: 5 * callRate, 2: 10, -1: many} {
			r := &config.Resource{
				URI: "https://mcp.example.com/mcp", Upstream: config.Upstream{CallsPerSecond: configured},
			}
			g, err := a.guard(someIssuer{}, r, false, common{mcpresource.NewBodies(memory), new(lastCalls), nil, nil})
			if err != nil {
				t.Fatal(err)
			}
			passed := 0
			for range many {
				release, err := g.Admit(ctx, mcpresource.Operation{Method: "tools/call", Name: "read"})
				if limit := (*mcpresource.LimitError)(nil); errors.As(err, &limit) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				release()
				passed++
			}
			if passed != want {
				t.Errorf("calls_per_second: %d: %d calls passed at once, want %d", configured, passed, want)
			}
		}
	})
}
