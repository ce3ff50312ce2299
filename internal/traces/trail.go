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

// Browsers name no trace when they go from page to page. So that a sign-in is one trace all the same,
// from the authorization request to the redirect with the code, a cookie keeps its context meanwhile.
const (
	cookieLife = 600 // seconds
	// maxContext bounds what is read of a caller: W3C Trace Context §3.3.1.5 has 512 for tracestate.
	maxContext = 512
)

// continued returns the context of a request with the trace that it belongs to, if any.
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
		return r.Context() // another sign-in of the same browser
	}
	return extract(r.Context(), http.Header{"Traceparent": {parent}})
}

// remember has the browser of an authorization request come back with its trace.
func (t *Traces) remember(w http.ResponseWriter, r *http.Request, s trace.SpanContext) {
	if !t.begins(r) {
		return
	}
	if old, err := r.Cookie(t.cookie); err == nil && strings.HasSuffix(old.Value, "."+attemptOf(r)) {
		return
	}
	if t.chosen {
		s = s.WithTraceFlags(trace.FlagsSampled) // whether it is sent is not for the browser to know
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

// attemptOf tells the authorization requests of one browser apart, by what stays the same when our
// pages lead back to one.
func attemptOf(r *http.Request) string {
	q := r.URL.Query()
	sum := sha256.Sum256([]byte(q.Get("client_id") + "\x00" + q.Get("code_challenge")))
	return hex.EncodeToString(sum[:6])
}

// extract returns ctx with the trace that the headers of a request name (W3C Trace Context). What is
// longer than it may be, repeated or malformed is ignored (RS-213). baggage is not read at all.
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
