// Package span adds spans to the trace of a context (OpenTelemetry). Without a trace, because
// traces are off or this one was not sampled, a call costs one lookup in the context.
//
// A span contains the operation, its duration and its result, in our words. It contains no text
// from a client, a user or a provider, and no error text.
package span

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// Scope is the instrumentation scope of all spans.
const Scope = "github.com/mcp-authd/mcp-authd"

// Our own attributes.
const (
	// Reference is the reference on an error page, which attempts and the log also contain.
	Reference = attribute.Key("mcp_authd.reference")
	// Refusal is the protocol's error code in a response.
	Refusal = attribute.Key("mcp_authd.error")
	// Connector is the provider of a request.
	Connector = attribute.Key("mcp_authd.connector")
)

// Begin starts a span for a part of the work of ctx. Call end with the resulting error.
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

// Did adds a span for a finished operation of a server, such as a database.
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

// TraceID returns the ID of the trace of ctx, or "".
func TraceID(ctx context.Context) string {
	if s := trace.SpanContextFromContext(ctx); s.IsSampled() {
		return s.TraceID().String()
	}
	return ""
}

func tracer(s trace.Span) trace.Tracer { return s.TracerProvider().Tracer(Scope) }

// Fail marks a span as failed. The error text stays in the log, because it may contain data that
// was sent or received.
func Fail(s trace.Span, err error) {
	if err == nil {
		return
	}
	s.SetStatus(codes.Error, "")
	s.SetAttributes(attribute.String("error.type", kind(err)))
}

// kind returns one of a few words: the convention demands a class of errors.
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
