package traces

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Browsers send no trace headers. A cookie keeps the trace from the authorization request to the
// redirect with the code.
const (
	cookieLife = 600 // seconds
	// maxContext limits trace headers, in bytes (tracestate: W3C Trace Context §3.3.1.5).
	maxContext = 512
)

// continued returns the request's context with the trace that it continues, if any.
func (t *Traces) continued(r *http.Request) context.Context {
	if ctx := extract(r.Context(), r.Header); ctx != r.Context() {
		return ctx
	}
	c, err := r.Cookie(t.cookie)
	if err != nil {
		return r.Context()
	}
	parent, attempt, _ := strings.Cut(c.Value, ".")
	if t.begins(r) && attempt != attemptOf(r) {
		return r.Context() // another sign-in in the same browser
	}
	return extract(r.Context(), http.Header{"Traceparent": {parent}})
}

// remember sets the cookie with the trace of an authorization request.
func (t *Traces) remember(w http.ResponseWriter, r *http.Request, s trace.SpanContext) {
	if !t.begins(r) {
		return
	}
	if old, err := r.Cookie(t.cookie); err == nil && strings.HasSuffix(old.Value, "."+attemptOf(r)) {
		return
	}
	if t.chosen {
		s = s.WithTraceFlags(trace.FlagsSampled) // hides from the browser whether the trace is sent
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(trace.ContextWithSpanContext(context.Background(), s), carrier)
	http.SetCookie(w, &http.Cookie{
		Name:     t.cookie,
		Value:    carrier["traceparent"] + "." + attemptOf(r),
		Path:     "/",
		MaxAge:   cookieLife,
		Secure:   t.secure,
		HttpOnly: true,
		SameSite: http.SameSiteLaxMode,
	})
}

func (t *Traces) begins(r *http.Request) bool {
	return r.Method == http.MethodGet && r.URL.Path == t.prefix+"/authorize"
}

// attemptOf identifies a sign-in by the parameters that stay the same when our pages return to the
// authorization request.
func attemptOf(r *http.Request) string {
	q := r.URL.Query()
	sum := sha256.Sum256([]byte(q.Get("client_id") + "\x00" + q.Get("code_challenge")))
	return hex.EncodeToString(sum[:6])
}

// extract returns ctx with the trace of the headers (W3C Trace Context). It ignores values that are
// too long, repeated or malformed (RS-213), and baggage.
func extract(ctx context.Context, h http.Header) context.Context {
	parent, state := h["Traceparent"], strings.Join(h["Tracestate"], ",")
	if len(parent) != 1 || len(parent[0]) > maxContext {
		return ctx
	}
	if len(state) > maxContext {
		state = ""
	}
	return propagation.TraceContext{}.Extract(ctx,
		propagation.MapCarrier{"traceparent": parent[0], "tracestate": state})
}
