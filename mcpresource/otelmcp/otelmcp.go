// Package otelmcp traces MCP calls with OpenTelemetry: one span for each call, following the
// conventions for MCP, and one for the guard's checks of a request.
//
//	guard, err := mcpresource.New(mcpresource.Config{
//		...
//		Tracer: otelmcp.New(provider, otelmcp.Options{}),
//	})
//
// The span of a call belongs to the trace in params._meta (SEP-414), and has a link to the trace of
// the HTTP request. Without params._meta it belongs to the trace of the HTTP request. That is the
// trace of a span that the program has started for the request, or else the one in its headers.
package otelmcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"strings"
	"unicode"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// Scope is the instrumentation scope of the spans.
const Scope = "github.com/mcp-authd/mcp-authd/mcpresource/otelmcp"

// Options selects additional data for spans.
type Options struct {
	// Arguments includes the arguments of tool calls in spans, with any personal data in them.
	// Results are never included.
	Arguments bool
}

// New returns a tracer for mcpresource.Config.Tracer.
func New(provider trace.TracerProvider, o Options) mcpresource.Tracer {
	return &tracer{Tracer: provider.Tracer(Scope), o: o}
}

type tracer struct {
	trace.Tracer
	o Options
}

// arrivedKey is the context key for the span context of the HTTP request.
type arrivedKey struct{}

// Judge implements mcpresource.Tracer.
func (t *tracer) Judge(r *http.Request) (context.Context, func(mcpresource.Outcome)) {
	ctx := r.Context()
	if !trace.SpanContextFromContext(ctx).IsValid() {
		ctx = extract(ctx, r.Header["Traceparent"], strings.Join(r.Header["Tracestate"], ","))
	}
	arrived := ctx
	ctx, s := t.Start(ctx, "guard")
	if !trace.SpanContextFromContext(arrived).IsValid() {
		arrived = ctx // the trace starts here
	}
	return context.WithValue(ctx, arrivedKey{}, arrived), func(o mcpresource.Outcome) {
		s.SetAttributes(attribute.String("mcp_authd.outcome", string(o)))
		if o == mcpresource.OutcomeUnavailable || o == mcpresource.OutcomeMisconfigured {
			fail(s, o)
		}
		s.End()
	}
}

// Call implements mcpresource.Tracer.
func (t *tracer) Call(ctx context.Context, c mcpresource.TracedCall) mcpresource.CallSpan {
	if arrived, ok := ctx.Value(arrivedKey{}).(context.Context); ok {
		ctx = arrived
	}
	o := []trace.SpanStartOption{
		trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(c.Began),
		trace.WithAttributes(t.attributes(c)...),
	}
	if named := extract(context.Background(), []string{c.TraceParent}, c.TraceState); c.TraceParent != "" &&
		trace.SpanContextFromContext(named).IsValid() { // RS-213
		o = append(o, trace.WithLinks(trace.Link{SpanContext: trace.SpanContextFromContext(ctx)}))
		ctx = trace.ContextWithRemoteSpanContext(ctx, trace.SpanContextFromContext(named))
	}
	_, s := t.Start(ctx, nameOf(c), o...)
	return &call{s}
}

// call implements mcpresource.CallSpan.
type call struct{ trace.Span }

// Within returns ctx with the span of the call.
func (c *call) Within(ctx context.Context) context.Context { return trace.ContextWithSpan(ctx, c.Span) }

// End ends the span. A 4xx or 5xx response of the MCP server, or a tool error, marks it as failed.
func (c *call) End(o mcpresource.Outcome, status int) {
	if status != 0 {
		c.SetAttributes(attribute.Int("http.response.status_code", status))
	}
	switch o {
	case mcpresource.OutcomeOK, mcpresource.OutcomeAllowed, mcpresource.OutcomeInputRequired,
		mcpresource.OutcomeClearanceRequired:
	default:
		fail(c.Span, o)
	}
	c.Span.End()
}

func fail(s trace.Span, o mcpresource.Outcome) {
	s.SetStatus(codes.Error, "")
	s.SetAttributes(attribute.String("error.type", string(o)))
}

const (
	// maxContext is the maximum length of each header: W3C Trace Context §3.3.1.5 has 512 for
	// tracestate.
	maxContext = 512
	maxName    = 100 // bytes, in the name of a span
	maxText    = 256
	// maxArguments is the maximum length of the arguments in a span.
	maxArguments = 4096
)

func extract(ctx context.Context, parent []string, state string) context.Context {
	if len(parent) != 1 || len(parent[0]) > maxContext {
		return ctx
	}
	if len(state) > maxContext {
		state = ""
	}
	return propagation.TraceContext{}.Extract(ctx,
		propagation.MapCarrier{"traceparent": parent[0], "tracestate": state})
}

// nameOf returns the span's name: the method, with the name of the tool or prompt, because a server
// has few of those.
func nameOf(c mcpresource.TracedCall) string {
	method := methodOf(c.Method)
	if c.Method == "tools/call" || c.Method == "prompts/get" {
		return method + " " + plain(c.Name, maxName)
	}
	return method
}

// methodOf returns a method for a span's name, or "_OTHER", because a client can send any text.
func methodOf(m string) string {
	odd := func(c rune) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '/' || c == '_' || c == '$')
	}
	if m == "" || len(m) > maxName || strings.ContainsFunc(m, odd) {
		return "_OTHER"
	}
	return m
}

func (t *tracer) attributes(c mcpresource.TracedCall) []attribute.KeyValue {
	out := []attribute.KeyValue{
		attribute.String("mcp.method.name", methodOf(c.Method)), attribute.String("network.transport", "tcp"),
		attribute.String("network.protocol.name", "http"),
	}
	add := func(key, value string, most int) {
		if value = plain(value, most); value != "" {
			out = append(out, attribute.String(key, value))
		}
	}
	add("mcp.protocol.version", c.Revision, len("2006-01-02"))
	add("mcp.session.id", digest(c.Session), maxText)
	add("jsonrpc.request.id", strings.Trim(string(c.ID), `"`), maxName)
	switch {
	case c.Method == "tools/call":
		add("gen_ai.operation.name", "execute_tool", maxName)
		add("gen_ai.tool.name", c.Name, maxText)
		if t.o.Arguments {
			add("gen_ai.tool.call.arguments", string(c.Arguments), maxArguments)
		}
	case c.Method == "prompts/get":
		add("gen_ai.prompt.name", c.Name, maxText)
	case strings.HasPrefix(c.Method, "resources/"):
		add("mcp.resource.uri", withoutQuery(c.Name), maxText)
	}
	if p := c.Principal; p != nil {
		add("oauth.client.id", p.ClientID, maxText)
		add("oauth.grant.id", p.GrantID(), maxText)
	}
	return out
}

// digest returns a digest of a session id. The id itself stays secret: with it and a token, the
// session can be used.
func digest(session string) string {
	if session == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(session))
	return hex.EncodeToString(sum[:8])
}

// withoutQuery returns a URI without the parts that may contain parameters and passwords.
func withoutQuery(uri string) string {
	u, err := url.Parse(uri)
	if err != nil {
		return ""
	}
	u.RawQuery, u.Fragment, u.User = "", "", nil
	return u.String()
}

// plain returns client text on one line with a maximum length.
func plain(s string, most int) string {
	s = strings.ToValidUTF8(s[:min(len(s), most)], "")
	return strings.Map(func(c rune) rune {
		if unicode.IsPrint(c) {
			return c
		}
		return -1
	}, s)
}
