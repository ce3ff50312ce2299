package traces

import (
	"net/http"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/mcp-authd/mcp-authd/internal/span"
	"github.com/mcp-authd/mcp-authd/internal/wire"
)

// Handler returns next with a span for each request except health checks. The span continues the
// caller's trace, if any.
func (t *Traces) Handler(next http.Handler) http.Handler {
	if t == nil {
		return next
	}
	scheme := attribute.String("url.scheme", map[bool]string{true: "https", false: "http"}[t.secure])
	begin := t.provider.Tracer(span.Scope)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == t.prefix+"/healthz" || r.URL.Path == t.prefix+"/readyz" {
			next.ServeHTTP(w, r)
			return
		}
		method := span.Method(r.Method)
		ctx, s := begin.Start(t.continued(r), method, trace.WithSpanKind(trace.SpanKindServer),
			trace.WithAttributes(attribute.String("http.request.method", method), scheme))
		defer s.End()
		t.remember(w, r, s.SpanContext())
		if !s.IsRecording() {
			next.ServeHTTP(w, r.WithContext(ctx))
			return
		}
		r = r.WithContext(ctx)
		a := &wire.Answer{ResponseWriter: w}
		defer func() { conclude(s, method, r.Pattern, a.Status) }()
		next.ServeHTTP(a, r)
		if a.Status == 0 {
			a.Status = http.StatusOK // net/http sends it by default
		}
	})
}

// conclude records the result. The route is the mux pattern, because paths and queries contain
// tokens, IDs and codes. Status 0 means that the handler panicked.
func conclude(s trace.Span, method, pattern string, status int) {
	route := pattern
	if _, path, ok := strings.Cut(pattern, " "); ok {
		route = path
	}
	if route != "" {
		s.SetName(method + " " + route)
		s.SetAttributes(attribute.String("http.route", route))
	}
	switch {
	case status == 0:
		s.SetStatus(codes.Error, "")
		s.SetAttributes(attribute.String("error.type", "aborted"))
		return
	case status >= http.StatusInternalServerError:
		s.SetStatus(codes.Error, "")
		s.SetAttributes(attribute.String("error.type", strconv.Itoa(status)))
	}
	s.SetAttributes(attribute.Int("http.response.status_code", status))
}
