package audit

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
)

// Request collects attributes while a request is handled, such as the user, client and resource.
// Events under its context and the server's log line include them.
type Request struct {
	mu    sync.Mutex // guards attrs
	attrs []slog.Attr
}

type requestKey struct{}

// NewRequest returns a Request with initial attributes, such as its request_id.
func NewRequest(attrs ...slog.Attr) *Request {
	r := &Request{}
	r.note(attrs)
	return r
}

// Within returns a context for the request r.
func Within(ctx context.Context, r *Request) context.Context {
	return context.WithValue(ctx, requestKey{}, r)
}

// Note sets attributes of the request of ctx, replacing those with the same names. Outside of a
// request it has no effect.
func Note(ctx context.Context, attrs ...slog.Attr) {
	if r, ok := ctx.Value(requestKey{}).(*Request); ok {
		r.note(attrs)
	}
}

// Reference returns the request_id of the request of ctx for log lines, or an empty attribute,
// which handlers omit.
func Reference(ctx context.Context) slog.Attr {
	if r, ok := ctx.Value(requestKey{}).(*Request); ok {
		if attrs := r.Attrs(); index(attrs, "request_id") >= 0 {
			return attrs[index(attrs, "request_id")]
		}
	}
	return slog.Attr{}
}

// Attrs returns a copy of the attributes.
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

// noted adds the attributes of the request of ctx. The event's own attributes win: they may be
// about another user or client.
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

// flat expands nameless groups, drops empty attributes, and shortens text. The result has capacity
// for more attributes.
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

// maxText limits an attribute, in bytes. Client ids that contain a registration are about this
// long.
const maxText = 600

// Text shortens a text that a caller chose to maxText bytes.
func Text(s string) string {
	if len(s) <= maxText {
		return s
	}
	return strings.ToValidUTF8(s[:maxText], "") + "..."
}
