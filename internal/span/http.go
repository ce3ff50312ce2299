package span

import (
	"net/http"
	"slices"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Transport returns base with a span for each request of a trace. The server that is asked learns
// nothing of the trace.
func Transport(base http.RoundTripper) http.RoundTripper { return client{base: base.RoundTrip} }

// Carry sends a request by send, with a span if it is of a trace.
func Carry(
	r *http.Request, send func(*http.Request) (*http.Response, error), attrs ...attribute.KeyValue,
) (*http.Response, error) {
	return client{base: send, attrs: attrs}.RoundTrip(r)
}

// Onward returns base with a span for each request of a trace, which goes on at the server that is
// asked: its headers say so, in place of those that the request has (W3C Trace Context).
func Onward(base http.RoundTripper) http.RoundTripper {
	return client{base: base.RoundTrip, onward: true}
}

type client struct {
	base   func(*http.Request) (*http.Response, error)
	attrs  []attribute.KeyValue
	onward bool
}

// RoundTrip implements http.RoundTripper. Of the URL the span has the host alone: queries and paths
// have secrets and names in them.
func (c client) RoundTrip(r *http.Request) (*http.Response, error) {
	parent := trace.SpanFromContext(r.Context())
	if !parent.SpanContext().IsValid() {
		return c.base(r)
	}
	s := parent
	if parent.IsRecording() {
		ctx, begun := tracer(parent).Start(r.Context(), Method(r.Method), trace.WithSpanKind(trace.SpanKindClient),
			trace.WithAttributes(append(asked(r), c.attrs...)...))
		s, r = begun, r.WithContext(ctx)
		defer s.End()
	}
	if c.onward {
		r = r.Clone(r.Context())
		r.Header.Del("tracestate")
		propagation.TraceContext{}.Inject(r.Context(), propagation.HeaderCarrier(r.Header))
	}
	resp, err := c.base(r)
	if s == parent {
		return resp, err
	}
	if Fail(s, err); err == nil {
		answered(s, resp.StatusCode)
	}
	return resp, err
}

func asked(r *http.Request) []attribute.KeyValue {
	out := []attribute.KeyValue{
		attribute.String("http.request.method", Method(r.Method)), attribute.String("url.scheme", r.URL.Scheme),
		attribute.String("server.address", r.URL.Hostname()),
	}
	if port, err := strconv.Atoi(r.URL.Port()); err == nil {
		out = append(out, attribute.Int("server.port", port))
	}
	return out
}

func answered(s trace.Span, status int) {
	s.SetAttributes(attribute.Int("http.response.status_code", status))
	if status >= http.StatusBadRequest {
		s.SetStatus(codes.Error, "")
		s.SetAttributes(attribute.String("error.type", strconv.Itoa(status)))
	}
}

// Method is an HTTP method as spans name it: a client can send any word.
func Method(m string) string {
	if slices.Contains(methods, m) {
		return m
	}
	return "_OTHER"
}

var methods = []string{
	http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
	http.MethodConnect, http.MethodOptions, http.MethodTrace,
}
