// Package traces sends spans to a collector (OpenTelemetry, OTLP over HTTP; OB-08): of the requests to
// this server, and, by package span, of what is done for them.
package traces

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	"github.com/mcp-authd/mcp-authd/internal/cookie"
	"github.com/mcp-authd/mcp-authd/internal/span"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/mcpresource"
	"github.com/mcp-authd/mcp-authd/mcpresource/otelmcp"
)

// Config says where spans go. What is zero is as the environment of OpenTelemetry has it (OTEL_...).
type Config struct {
	Endpoint string            // URL of the collector, without /v1/traces
	Headers  map[string]string // sent to it
	// Sample is which part of the traces is sent, above 0 and up to 1; 0: by the environment, or else
	// all.
	Sample float64
	// Key is what traces are chosen by: the same on every server, so that they choose the same ones. Without
	// it each process has its own.
	Key     []byte
	Issuer  string // of the server
	Version string // of this program
	Logger  *slog.Logger
	// Told is told of spans that were "sent", "failed" to be, or "dropped", because too many waited.
	// It must not block.
	Told func(result string, spans int)
}

// What becomes of spans.
const (
	Sent    = "sent"
	Failed  = "failed"
	Dropped = "dropped"
)

// Traces are the traces of one process. A nil *Traces are none.
type Traces struct {
	sdk      *sdk.TracerProvider
	out      *outlet
	provider *provider
	prefix   string // of the paths of the server
	cookie   string // its name
	secure   bool   // it is reached by https
	chosen   bool   // which traces are sent is ours to say
}

const (
	// waiting is how many spans may wait for the collector, and batch how many it gets at once.
	waiting = 4096
	batch   = 512
	// maxText bounds an attribute, in bytes. The longest are arguments of tools, if they are asked for.
	maxText = 4096
	// endTime is how long the last spans may take.
	endTime = 5 * time.Second
)

// New returns traces, which Close ends. It does not ask the collector.
func New(ctx context.Context, c Config) (*Traces, error) {
	u, err := url.Parse(c.Issuer)
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	exporter, err := otlptracehttp.New(ctx, c.exporter()...)
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	about, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "mcp-authd"),
			attribute.String("service.version", c.Version)),
		resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("traces: OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	out := &outlet{SpanExporter: exporter, told: c.Told, log: c.Logger, now: time.Now}
	limits := sdk.NewSpanLimits() // by the environment
	if limits.AttributeValueLengthLimit < 0 || limits.AttributeValueLengthLimit > maxText {
		limits.AttributeValueLengthLimit = maxText
	}
	options := []sdk.TracerProviderOption{
		sdk.WithResource(about), sdk.WithSpanProcessor(newQueue(out)), sdk.WithRawSpanLimits(limits),
		sdk.WithoutPanicRecording(),
	}
	if c.Sample > 0 {
		options = append(options, sdk.WithSampler(newSampler(c.Sample, c.Key)))
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(out.complain))
	all := sdk.NewTracerProvider(options...)
	return &Traces{
		sdk: all, out: out, provider: &provider{real: all, ours: []string{span.Scope, otelmcp.Scope}},
		prefix: strings.TrimSuffix(u.EscapedPath(), "/"), secure: cookie.Secure(c.Issuer),
		cookie: cookie.Name(c.Issuer, "trace"), chosen: c.Sample > 0,
	}, nil
}

func (c Config) exporter() (out []otlptracehttp.Option) {
	if c.Endpoint != "" {
		out = append(out, otlptracehttp.WithEndpointURL(strings.TrimSuffix(c.Endpoint, "/")+"/v1/traces"))
	}
	if len(c.Headers) > 0 {
		out = append(out, otlptracehttp.WithHeaders(c.Headers))
	}
	return out
}

// Store returns what package internal/storage/timed tells of: each verb is a span of the request for which it
// was carried out. database is "sqlite" or "postgresql".
func (t *Traces) Store(database string) func(context.Context, string, time.Time, time.Duration, error) {
	system := attribute.String("db.system.name", database)
	return func(ctx context.Context, verb string, began time.Time, took time.Duration, err error) {
		if !storage.Failed(err) {
			err = nil // an answer
		}
		span.Did(ctx, verb, began, took, err, system, attribute.String("db.operation.name", verb))
	}
}

// Calls returns what follows calls of MCP through a guard, nil for nil. arguments are those of tools.
func (t *Traces) Calls(arguments bool) mcpresource.Tracer {
	if t == nil {
		return nil
	}
	return otelmcp.New(t.provider, otelmcp.Options{Arguments: arguments})
}

// Close sends the spans that wait, for a few seconds at most.
func (t *Traces) Close() {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), endTime)
	defer cancel()
	_ = t.sdk.Shutdown(ctx) // what could not be sent has been counted
}
