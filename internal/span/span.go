// Package span adds spans to the trace that a context belongs to (OpenTelemetry). Where it belongs to
// none, because traces are off, or this one was not chosen, a call costs one look into the context.
//
// A span says what was done, how long it took, and how it ended, in words of ours: nothing that a
// client, a person or a provider has written, and no text of an error.
package span

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// Scope names this program as what has made a span.
const Scope = "github.com/mcp-authd/mcp-authd"

// The attributes that are ours.
const (
	// Reference is what a person sees on an error page, and what attempts and the log have.
	Reference = attribute.Key("mcp_authd.reference")
	// Refusal is the protocol's error code that a request was answered with.
	Refusal = attribute.Key("mcp_authd.error")
	// Connector is the provider that a request went to.
	Connector = attribute.Key("mcp_authd.connector")
)

// Begin begins a span for a part of the work of ctx. end is called with the error that came of it.
func Begin(ctx context.Context, name string, attrs ...attribute.KeyValue) (_ context.Context, end func(error)) {
	parent := trace.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return ctx, nothing
	}
	ctx, s := tracer(parent).Start(ctx, name, trace.WithAttributes(attrs...))
	return ctx, func(err error) {
		Fail(s, err)
		s.End()
	}
}

func nothing(error) {}

// Did adds a span for work that has just ended at a server, such as a database.
func Did(
	ctx context.Context, name string, began time.Time, took time.Duration, err error, attrs ...attribute.KeyValue,
) {
	parent := trace.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return
	}
	_, s := tracer(parent).Start(ctx, name, trace.WithTimestamp(began), trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(attrs...))
	Fail(s, err)
	s.End(trace.WithTimestamp(began.Add(took)))
}

// Note adds attributes to the span of ctx.
func Note(ctx context.Context, attrs ...attribute.KeyValue) {
	trace.SpanFromContext(ctx).SetAttributes(attrs...)
}

// TraceID names the trace that ctx belongs to, "" for none.
func TraceID(ctx context.Context) string {
	if s := trace.SpanContextFromContext(ctx); s.IsSampled() {
		return s.TraceID().String()
	}
	return ""
}

func tracer(s trace.Span) trace.Tracer { return s.TracerProvider().Tracer(Scope) }

// Fail says that a span ended with an error. The text stays in the log: it may have in it what was
// sent or answered.
func Fail(s trace.Span, err error) {
	if err == nil {
		return
	}
	s.SetStatus(codes.Error, "")
	s.SetAttributes(attribute.String("error.type", kind(err)))
}

// kind is one of a few words: the convention wants a class of errors.
func kind(err error) string {
	var late interface{ Timeout() bool }
	switch {
	case errors.Is(err, context.Canceled):
		return "canceled"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &late) && late.Timeout():
		return "timeout"
	}
	return "_OTHER"
}
