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

// Transport returns base with a span for each request of a trace. The called server learns nothing
// about the trace.
func Transport(base http.RoundTripper) http.RoundTripper { return client{base: base.RoundTrip} }

// Carry sends a request with send, within a span if the request has a trace.
func Carry(
	r *http.Request, send func(*http.Request) (*http.Response, error), attrs ...attribute.KeyValue,
) (*http.Response, error) {
	return client{base: send, attrs: attrs}.RoundTrip(r)
}

// Onward returns base with a span for each request of a trace. The trace continues at the called
// server: its headers replace the request's (W3C Trace Context).
func Onward(base http.RoundTripper) http.RoundTripper {
	return client{base: base.RoundTrip, onward: true}
}

type client struct {
	base   func(*http.Request) (*http.Response, error)
	attrs  []attribute.KeyValue
	onward bool
}

// RoundTrip implements http.RoundTripper. The span contains only the host of the URL, because
// queries and paths contain secrets and names.
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

// Method returns an HTTP method for a span. A client can send any word, so unknown methods have one
// common name.
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
