package audit

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
)

// Request gathers what becomes known of a request while it is handled: who asks, by which
// application, for what. Each event that is recorded under its context carries it, and so
// does the line that the server logs of the request.
type Request struct {
	mu    sync.Mutex // guards attrs
	attrs []slog.Attr
}

type requestKey struct{}

// NewRequest returns a Request of which attrs are known, such as its request_id.
func NewRequest(attrs ...slog.Attr) *Request {
	r := &Request{}
	r.note(attrs)
	return r
}

// Within returns a context for what happens in the request r.
func Within(ctx context.Context, r *Request) context.Context {
	return context.WithValue(ctx, requestKey{}, r)
}

// Note adds to what is known of the request of ctx. What is noted again replaces what was
// noted before. Outside of a request it does nothing.
func Note(ctx context.Context, attrs ...slog.Attr) {
	if r, ok := ctx.Value(requestKey{}).(*Request); ok {
		r.note(attrs)
	}
}

// Reference returns the request_id of the request of ctx, for lines of the log; without one it is empty, and
// left out.
func Reference(ctx context.Context) slog.Attr {
	if r, ok := ctx.Value(requestKey{}).(*Request); ok {
		if attrs := r.Attrs(); index(attrs, "request_id") >= 0 {
			return attrs[index(attrs, "request_id")]
		}
	}
	return slog.Attr{}
}

// Attrs returns what is known.
func (r *Request) Attrs() []slog.Attr {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.attrs)
}

func (r *Request) note(attrs []slog.Attr) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range flat(attrs, 0) {
		if i := index(r.attrs, a.Key); i >= 0 {
			r.attrs[i] = a
			continue
		}
		r.attrs = append(r.attrs, a)
	}
}

func index(attrs []slog.Attr, key string) int {
	return slices.IndexFunc(attrs, func(a slog.Attr) bool { return a.Key == key })
}

// noted returns attrs and what else is known of the request of ctx. An event's own
// attributes go first: it may be about another person or client than the request.
func noted(ctx context.Context, attrs []slog.Attr) []slog.Attr {
	r, ok := ctx.Value(requestKey{}).(*Request)
	if !ok {
		return flat(attrs, 0)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	out := flat(attrs, len(r.attrs))
	for _, a := range r.attrs {
		if index(out, a.Key) < 0 {
			out = append(out, a)
		}
	}
	return out
}

// flat takes nameless groups apart, as handlers do, leaves out what is empty, and bounds
// what callers choose. The list has room for some more.
func flat(attrs []slog.Attr, more int) []slog.Attr {
	for _, a := range attrs {
		if a.Value.Kind() == slog.KindGroup {
			more += len(a.Value.Group())
		}
	}
	return appendFlat(make([]slog.Attr, 0, len(attrs)+more), attrs)
}

func appendFlat(out, attrs []slog.Attr) []slog.Attr {
	for _, a := range attrs {
		switch {
		case a.Value.Kind() == slog.KindGroup && a.Key == "":
			out = appendFlat(out, a.Value.Group())
		case a.Equal(slog.Attr{}), a.Value.Kind() == slog.KindString && a.Value.String() == "":
		case a.Value.Kind() == slog.KindString:
			out = append(out, slog.String(a.Key, Text(a.Value.String())))
		default:
			out = append(out, a)
		}
	}
	return out
}

// maxText bounds an attribute in bytes. The ids of clients that registered themselves hold
// their registration, and are of this order.
const maxText = 600

// Text is s as far as a log should hold what a caller chose.
func Text(s string) string {
	if len(s) <= maxText {
		return s
	}
	return strings.ToValidUTF8(s[:maxText], "") + "..."
}
