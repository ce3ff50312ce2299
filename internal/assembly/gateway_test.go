package assembly

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/internal/gateway/toolwatch"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// TestRecordCall checks that callers cannot write megabytes into the log, and that calls with their
// own log line are not logged twice.
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

// TestSharesOrigin checks that the metadata at the root of an origin do not claim a shared origin
// for the gateway's MCP server (security review M6).
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

// TestSessionsOfUpstream checks that the configuration decides whether sessions also belong to the
// application (RS-112).
func TestSessionsOfUpstream(t *testing.T) {
	a := Parts{Log: slog.New(slog.DiscardHandler), Config: &config.Loaded{Config: &config.Config{}}}
	for key, shared := range map[string]bool{"": true, "person": true, "client": false} {
		r := &config.Resource{URI: "https://mcp.example.com/mcp", Upstream: config.Upstream{Sessions: key}}
		g, err := a.guard(someIssuer{}, r, false, commonOf(nil))
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

// TestCallsPerSecond checks that a negative calls_per_second means no limit, and that an unset one
// means the default (RS-189).
func TestCallsPerSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 2000 // more than the guard's default burst
		a := Parts{Log: slog.New(slog.DiscardHandler), Config: &config.Loaded{Config: &config.Config{}}}
		alice := &mcpresource.Principal{Issuer: "https://auth.example.com", Subject: "alice", ClientID: "app"}
		ctx := mcpresource.NewContext(t.Context(), alice)
		for configured, want := range map[int]int{0: 5 * callRate, 2: 10, -1: many} {
			r := &config.Resource{
				URI: "https://mcp.example.com/mcp", Upstream: config.Upstream{CallsPerSecond: configured},
			}
			g, err := a.guard(someIssuer{}, r, false, commonOf(nil))
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

// commonOf returns the shared parts of the guards of a test.
func commonOf(watch *toolwatch.Watch) common {
	return common{bodies: mcpresource.NewBodies(memory), calls: new(lastCalls), watch: watch}
}
