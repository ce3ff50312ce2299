package assembly

import (
	"net/http"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/testkit/collector"
)

// TestTraced checks that a request to a server with traces is one trace with its store calls, and
// that its span has the reference of the response (OB-08).
func TestTraced(t *testing.T) {
	c := collector.New(t)
	s := measured(t, "MCP_AUTHD_TRACES_ENABLED=true", "MCP_AUTHD_TRACES_ENDPOINT="+c.URL,
		"MCP_AUTHD_TRACES_HEADERS=Api-Key: k")
	w := ask(s.Handler(), http.MethodGet, "/authorize?client_id=SECRET&response_type=code")
	ask(s.Handler(), http.MethodGet, "/healthz")
	s.Close()
	var server collector.Span
	verbs := 0
	for _, span := range c.Spans() {
		if span.Kind == "SPAN_KIND_SERVER" {
			server = span
		}
	}
	for _, span := range c.Spans() {
		if span.Attributes["db.system.name"] == "sqlite" && span.Trace == server.Trace {
			verbs++
		}
	}
	if server.Name != "GET /authorize" || server.Attributes["mcp_authd.reference"] != w.Header().Get("X-Request-Id") ||
		server.Attributes["mcp_authd.error"] == "" || verbs == 0 {
		t.Errorf("got %+v with %d verbs", server, verbs)
	}
	if n := len(c.Spans()); n != verbs+1 || c.Header().Get("Api-Key") != "k" {
		t.Errorf("got %d spans, want %d; %v", n, verbs+1, c.Header())
	}
	if !strings.Contains(scrape(s), `mcp_authd_trace_spans_total{result="sent"} `) {
		t.Error("the sent spans are not counted")
	}
}

// TestUntraced checks that traces are off by default, and that OTEL_SDK_DISABLED turns them off
// (OB-08).
func TestUntraced(t *testing.T) {
	if s := measured(t); s.parts.traces != nil {
		t.Error("traces are on")
	}
	t.Setenv("OTEL_SDK_DISABLED", "true")
	if s := measured(t, "MCP_AUTHD_TRACES_ENABLED=true"); s.parts.traces != nil {
		t.Error("traces are on")
	}
}
