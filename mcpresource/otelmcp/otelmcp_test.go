package otelmcp_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/mcp-authd/mcp-authd/mcpresource"
	"github.com/mcp-authd/mcp-authd/mcpresource/gosdk"
	"github.com/mcp-authd/mcp-authd/mcpresource/otelmcp"
)

const (
	resource    = "https://mcp.example.com/mcp"
	theirTrace  = "0af7651916cd43dd8448eb211c80319c"
	headerTrace = "11111111111111111111111111111111"
)

func parentIn(trace string) string { return "00-" + trace + "-b7ad6b7169203331-01" }

// rig is a guard with tracing in front of a handler.
type rig struct {
	*tracetest.InMemoryExporter
	guard    *mcpresource.Guard
	provider *sdk.TracerProvider
	handler  http.Handler
	log      bytes.Buffer
}

func newRig(t *testing.T, o otelmcp.Options, next http.HandlerFunc) *rig {
	t.Helper()
	r := &rig{InMemoryExporter: tracetest.NewInMemoryExporter()}
	r.provider = sdk.NewTracerProvider(sdk.WithSyncer(r))
	var err error
	if r.guard, err = mcpresource.New(mcpresource.Config{
		Resource:             resource,
		AuthorizationServers: []string{"https://auth.example.com"},
		Policy: &mcpresource.Rules{
			Base: []string{"mcp"}, Tools: map[string][]string{"secret": {"deep"}}, Public: []string{"ping"},
		},
		Validator: mcpresource.ValidatorFunc(caller),
		Tracer:    otelmcp.New(r.provider, o),
		Logger:    slog.New(slog.NewTextHandler(&r.log, nil)),
	}); err != nil {
		t.Fatal(err)
	}
	r.handler = r.guard.Protect(next)
	return r
}

func caller(context.Context, mcpresource.Credential) (*mcpresource.Principal, error) {
	return &mcpresource.Principal{
		Issuer: "https://auth.example.com", Subject: "usr_1", ClientID: "cli_1", Scopes: []string{"mcp"},
		Audience: []string{resource}, ExpiresAt: time.Now().Add(time.Hour), Claims: []byte(`{"gid":"grt_1"}`),
	}, nil
}

func (r *rig) post(body string, header http.Header) *httptest.ResponseRecorder {
	in := httptest.NewRequest(http.MethodPost, resource, strings.NewReader(body))
	maps.Copy(in.Header, header)
	w := httptest.NewRecorder()
	r.handler.ServeHTTP(w, in)
	return w
}

// calls returns the spans of calls, which have the kind server.
func (r *rig) calls() (out []tracetest.SpanStub) {
	for _, s := range r.GetSpans() {
		if s.SpanKind == trace.SpanKindServer {
			out = append(out, s)
		}
	}
	return out
}

func attributes(s tracetest.SpanStub) map[string]string {
	out := map[string]string{}
	for _, kv := range s.Attributes {
		out[string(kv.Key)] = kv.Value.String()
	}
	return out
}

var token = http.Header{"Authorization": {"Bearer SECRET-token"}}

func with(h http.Header, more ...string) http.Header {
	h = h.Clone()
	for i := 0; i < len(more); i += 2 {
		h.Add(more[i], more[i+1])
	}
	return h
}

// TestConventions: OB-08: the span of a call follows the conventions for MCP with any outcome, and
// contains no argument, result, token or baggage.
func TestConventions(t *testing.T) {
	for name, tt := range map[string]struct {
		body   string
		header http.Header
		span   string
		want   map[string]string
		failed bool
	}{
		"a tool": {
			body: `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"add","arguments":{"a":"SECRET"},` +
				`"_meta":{"baggage":"who=SECRET"}}}`,
			header: with(token, "Mcp-Protocol-Version", "2025-11-25", "Baggage", "who=SECRET"),
			span:   "tools/call add",
			want: map[string]string{
				"mcp.method.name": "tools/call", "mcp.protocol.version": "2025-11-25", "jsonrpc.request.id": "7",
				"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "add", "oauth.client.id": "cli_1",
				"oauth.grant.id": "grt_1", "http.response.status_code": "200",
			},
		},
		"a prompt": {
			body: `{"jsonrpc":"2.0","id":"x","method":"prompts/get","params":{"name":"p"}}`, header: token,
			span: "prompts/get p",
			want: map[string]string{
				"mcp.method.name": "prompts/get", "jsonrpc.request.id": "x", "gen_ai.prompt.name": "p",
				"oauth.client.id": "cli_1", "oauth.grant.id": "grt_1", "http.response.status_code": "200",
			},
		},
		"a resource, without its query": {
			body:   `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"https://a.example/x?key=SECRET"}}`,
			header: token,
			span:   "resources/read",
			want: map[string]string{
				"mcp.method.name": "resources/read", "jsonrpc.request.id": "1",
				"mcp.resource.uri": "https://a.example/x", "oauth.client.id": "cli_1",
				"oauth.grant.id": "grt_1", "http.response.status_code": "200",
			},
		},
		"a method that is no word": {
			body:   `{"jsonrpc":"2.0","method":"SECRET 1"}`,
			header: token,
			span:   "_OTHER",
			want: map[string]string{
				"mcp.method.name": "_OTHER", "oauth.client.id": "cli_1", "oauth.grant.id": "grt_1",
				"http.response.status_code": "200",
			},
		},
		"a tool that is refused": {
			body:   `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"secret"}}`,
			header: token,
			span:   "tools/call secret",
			want: map[string]string{
				"mcp.method.name": "tools/call", "jsonrpc.request.id": "1", "gen_ai.operation.name": "execute_tool",
				"gen_ai.tool.name": "secret", "oauth.client.id": "cli_1", "oauth.grant.id": "grt_1",
				"http.response.status_code": "403", "error.type": "insufficient_scope",
			},
			failed: true,
		},
		"a method that needs no token": {
			body: `{"jsonrpc":"2.0","id":1,"method":"ping"}`, header: http.Header{}, span: "ping",
			want: map[string]string{
				"mcp.method.name": "ping", "jsonrpc.request.id": "1", "http.response.status_code": "200",
			},
		},
	} {
		r := newRig(t, otelmcp.Options{}, func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, `{"result":"SECRET"}`)
		})
		r.post(tt.body, tt.header)
		spans := r.calls()
		if len(spans) != 1 {
			t.Errorf("%s: got %d spans", name, len(spans))
			continue
		}
		tt.want["network.transport"], tt.want["network.protocol.name"] = "tcp", "http"
		if got := attributes(spans[0]); spans[0].Name != tt.span || !maps.Equal(got, tt.want) ||
			(spans[0].Status.Code == codes.Error) != tt.failed {
			t.Errorf("%s: got %s %v, want %s %v", name, spans[0].Name, got, tt.span, tt.want)
		}
		if text := fmt.Sprintf("%+v", r.GetSpans()); strings.Contains(text, "SECRET") {
			t.Errorf("%s: got %s", name, text)
		}
	}
}

// TestGuardSpan: OB-08: a request refused before its message is read has only the guard's span, and
// a session is shown as a digest.
func TestGuardSpan(t *testing.T) {
	r := newRig(t, otelmcp.Options{}, func(http.ResponseWriter, *http.Request) {})
	r.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add"}}`,
		http.Header{"Authorization": {"Basic SECRET"}})
	spans := r.GetSpans()
	want := map[string]string{"mcp_authd.outcome": "malformed"}
	if len(spans) != 1 || spans[0].Name != "guard" || !maps.Equal(attributes(spans[0]), want) {
		t.Errorf("got %+v", spans)
	}
	r.Reset()
	r.post(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, with(token, "Mcp-Session-Id", "SECRET"))
	spans = r.calls()
	if len(spans) != 1 || len(attributes(spans[0])["mcp.session.id"]) != 16 {
		t.Errorf("got %+v", spans)
	}
}

// TestArguments: OB-08: arguments are in the span only if enabled, with a maximum length.
func TestArguments(t *testing.T) {
	r := newRig(t, otelmcp.Options{Arguments: true}, func(http.ResponseWriter, *http.Request) {})
	r.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{"a":"`+
		strings.Repeat("b", 10_000)+`"}}}`, token)
	got := attributes(r.calls()[0])["gen_ai.tool.call.arguments"]
	if !strings.HasPrefix(got, `{"a":"bbb`) || len(got) != 4096 {
		t.Errorf("got %d bytes", len(got))
	}
}

// TestContext: RS-213: a call belongs to the trace in params._meta, with a link to the other one.
// Next comes the program's trace, then the one in the headers. Values that are too long or
// malformed are ignored, without a response or log line.
func TestContext(t *testing.T) {
	long := strings.Repeat("a", 10_000)
	meta := func(members string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","_meta":{` + members + `}}}`
	}
	named := `"traceparent":"` + parentIn(theirTrace) + `"`
	header := with(token, "Traceparent", parentIn(headerTrace))
	for name, tt := range map[string]struct {
		body   string
		header http.Header
		own    bool // the program has started a span
		want   string
		link   string
	}{
		"_meta alone":           {meta(named), token, false, theirTrace, "new"},
		"_meta and headers":     {meta(named), header, false, theirTrace, headerTrace},
		"headers alone":         {meta(""), header, false, headerTrace, ""},
		"neither":               {meta(""), token, false, "new", ""},
		"of the program":        {meta(""), header, true, "own", ""},
		"_meta and the program": {meta(named), header, true, theirTrace, "own"},
		"10,000 characters": {
			meta(`"traceparent":"` + parentIn(theirTrace) + long + `"`), header, false, headerTrace, "",
		},
		"10,000 of a version to come": {
			meta(`"traceparent":"01` + parentIn(theirTrace)[2:] + "-" + long + `"`), header, false, headerTrace, "",
		},
		"a state of 10,000": {
			meta(named + `,"tracestate":"a=` + long + `"`), header, false, theirTrace, headerTrace,
		},
		"baggage of 10,000":      {meta(named + `,"baggage":"a=` + long + `"`), header, false, theirTrace, headerTrace},
		"malformed":              {meta(`"traceparent":"aaaaaa"`), header, false, headerTrace, ""},
		"no text":                {meta(`"traceparent":["aaaaaa"]`), header, false, headerTrace, ""},
		"another one in capital": {meta(named + `,"TraceParent":"x"`), header, false, headerTrace, ""},
		"headers of 10,000":      {meta(""), with(token, "Traceparent", parentIn(headerTrace)+long), false, "new", ""},
	} {
		var seen trace.SpanContext
		r := newRig(t, otelmcp.Options{}, func(w http.ResponseWriter, r *http.Request) {
			seen = trace.SpanContextFromContext(r.Context())
		})
		own := "none"
		if tt.own {
			next := r.handler
			r.handler = http.HandlerFunc(func(w http.ResponseWriter, in *http.Request) {
				ctx, s := r.provider.Tracer("program").Start(in.Context(), "POST")
				own = s.SpanContext().TraceID().String()
				next.ServeHTTP(w, in.WithContext(ctx))
				s.End()
			})
		}
		w := r.post(tt.body, tt.header)
		s := r.calls()[0]
		kind := func(c trace.SpanContext) string {
			switch id := c.TraceID().String(); id {
			case theirTrace, headerTrace:
				return id
			case own:
				return "own"
			}
			return "new"
		}
		link := ""
		if len(s.Links) == 1 {
			link = kind(s.Links[0].SpanContext)
		}
		if got := kind(s.SpanContext); got != tt.want || link != tt.link {
			t.Errorf("%s: got the trace %s with a link to %q, want %s and %q", name, got, link, tt.want, tt.link)
		}
		if !seen.Equal(s.SpanContext) {
			t.Errorf("%s: the handler works for %v, want %v", name, seen, s.SpanContext)
		}
		answer, _ := io.ReadAll(w.Result().Body)
		text := fmt.Sprint(w.Header(), string(answer), r.log.String(), r.GetSpans())
		if strings.Contains(text, "aaaaaa") {
			t.Errorf("%s: got %s", name, text)
		}
	}
}

// TestBatch: each call of a batch has a span, and their shared work belongs to none.
func TestBatch(t *testing.T) {
	var seen trace.SpanContext
	r := newRig(t, otelmcp.Options{}, func(_ http.ResponseWriter, r *http.Request) {
		seen = trace.SpanContextFromContext(r.Context())
	})
	r.post(`[{"jsonrpc":"2.0","id":1,"method":"tools/list"},{"jsonrpc":"2.0","id":2,"result":{}},`+
		`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"add"}}]`, token)
	spans := r.calls()
	if len(spans) != 2 || spans[0].Name != "tools/list" || spans[1].Name != "tools/call add" || seen.IsValid() {
		t.Errorf("got %+v, and the handler works for %v", spans, seen)
	}
}

// TestAdapter: OB-08: a tool of the Go SDK runs in the span of its call, also in a session, and the
// span shows its failure.
func TestAdapter(t *testing.T) {
	r := newRig(t, otelmcp.Options{}, nil)
	server := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "add"}, func(
		ctx context.Context, _ *mcp.CallToolRequest, _ struct{},
	) (*mcp.CallToolResult, any, error) {
		_, s := r.provider.Tracer("tool").Start(ctx, "work")
		s.End()
		return nil, nil, fmt.Errorf("no")
	})
	r.handler = gosdk.NewHandler(r.guard, server, nil)
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		h := with(token, "Accept", "application/json, text/event-stream", "Content-Type", "application/json")
		meta := ""
		if revision == "2025-11-25" {
			w := r.post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",`+
				`"capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`, h)
			h.Set("Mcp-Session-Id", w.Header().Get("Mcp-Session-Id"))
			r.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, h)
		} else {
			h = with(h, "Mcp-Method", "tools/call", "Mcp-Name", "add")
			meta = `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
				`"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},` +
				`"io.modelcontextprotocol/clientCapabilities":{}}`
		}
		h.Set("Mcp-Protocol-Version", revision)
		r.Reset()
		w := r.post(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"add","arguments":{}`+meta+`}}`, h)
		var work tracetest.SpanStub
		for _, s := range r.GetSpans() {
			if s.Name == "work" {
				work = s
			}
		}
		calls := r.calls()
		if len(calls) != 1 || work.Parent.SpanID() != calls[0].SpanContext.SpanID() ||
			attributes(calls[0])["error.type"] != "tool_error" {
			t.Errorf("%s: got %d %s, %+v within %+v", revision, w.Code, w.Body, work, calls)
		}
	}
}
