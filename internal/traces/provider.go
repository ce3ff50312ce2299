package traces

import (
	"context"

	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/embedded"
	"go.opentelemetry.io/otel/trace/noop"
)

// provider returns working tracers only for our scopes. Libraries such as fosite also start spans
// when the context has one, with error texts that contain client data.
type provider struct {
	embedded.TracerProvider
	real trace.TracerProvider
	ours []string // instrumentation scopes
}

// Tracer implements trace.TracerProvider.
func (p *provider) Tracer(name string, options ...trace.TracerOption) trace.Tracer {
	for _, scope := range p.ours {
		if scope == name {
			return tracer{real: p.real.Tracer(name, options...), provider: p}
		}
	}
	return quiet{}
}

type tracer struct {
	embedded.Tracer
	real     trace.Tracer
	provider *provider
}

// Start implements trace.Tracer.
func (t tracer) Start(ctx context.Context, name string, o ...trace.SpanStartOption) (context.Context, trace.Span) {
	ctx, s := t.real.Start(ctx, name, o...)
	s = begun{s, t.provider}
	return trace.ContextWithSpan(ctx, s), s
}

// begun is a span that leads its children to our provider.
type begun struct {
	trace.Span
	provider *provider
}

// TracerProvider implements trace.Span.
func (b begun) TracerProvider() trace.TracerProvider { return b.provider }

// quiet starts no span and leaves ours in the context.
type quiet struct{ embedded.Tracer }

// Start implements trace.Tracer.
func (quiet) Start(ctx context.Context, _ string, _ ...trace.SpanStartOption) (context.Context, trace.Span) {
	return ctx, noop.Span{}
}
