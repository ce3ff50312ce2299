package traces

import (
	"context"

	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/embedded"
	"go.opentelemetry.io/otel/trace/noop"
)

// provider gives a tracer to packages of ours alone. Libraries begin spans where they find one in the
// context, as fosite does, and put texts of errors into them, in which is what clients sent.
type provider struct {
	embedded.TracerProvider
	real trace.TracerProvider
	ours []string // scopes
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

// begun is a span by which others find the provider again.
type begun struct {
	trace.Span
	provider *provider
}

// TracerProvider implements trace.Span.
func (b begun) TracerProvider() trace.TracerProvider { return b.provider }

// quiet begins nothing, and leaves the span of ours in the context.
type quiet struct{ embedded.Tracer }

// Start implements trace.Tracer.
func (quiet) Start(ctx context.Context, _ string, _ ...trace.SpanStartOption) (context.Context, trace.Span) {
	return ctx, noop.Span{}
}
