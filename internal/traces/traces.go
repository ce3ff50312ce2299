// Package traces sends spans of requests to a collector (OpenTelemetry, OTLP over HTTP; OB-08).
// Package span adds the operations inside them.
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

// Config configures the export. OTEL_ environment variables replace Endpoint, Headers and Sample if
// they are zero.
type Config struct {
	Endpoint string            // collector URL without /v1/traces
	Headers  map[string]string // for the collector
	// Sample is the fraction of traces to send, up to 1. 0: OTEL_TRACES_SAMPLER decides.
	Sample float64
	// Key selects traces: servers with the same key send the same ones. Default: random per
	// process.
	Key     []byte
	Issuer  string // URL of this server
	Version string // of this program
	Logger  *slog.Logger
	// Told is called with the number of spans that were sent, failed or dropped. It must not block.
	Told func(result string, spans int)
}

// The results that Told receives.
const (
	Sent    = "sent"    // the collector accepted them
	Failed  = "failed"  // the collector did not accept them
	Dropped = "dropped" // the queue was full
)

// Traces creates and exports the spans of a process. The methods of a nil *Traces do nothing.
type Traces struct {
	sdk      *sdk.TracerProvider
	out      *outlet
	provider *provider
	prefix   string // of the server's paths
	cookie   string // its name
	secure   bool   // the server uses https
	chosen   bool   // Config.Sample, not the environment, selects traces
}

const (
	// waiting limits the queue, and batch each export, in spans.
	waiting = 4096
	batch   = 512
	// maxText limits an attribute, in bytes. Tool arguments are the longest.
	maxText = 4096
	// endTime limits the export of the last spans.
	endTime = 5 * time.Second
)

// New returns traces that must be closed. It does not connect to the collector.
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
	limits := sdk.NewSpanLimits() // from the environment
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

// Store returns a function for storage.Timed that records each verb as a span of its request.
// database is "sqlite" or "postgresql".
func (t *Traces) Store(database string) func(context.Context, string, time.Time, time.Duration, error) {
	system := attribute.String("db.system.name", database)
	return func(ctx context.Context, verb string, began time.Time, took time.Duration, err error) {
		if !storage.Failed(err) {
			err = nil // a result, such as storage.ErrNotFound
		}
		span.Did(ctx, verb, began, took, err, system, attribute.String("db.operation.name", verb))
	}
}

// Calls returns a tracer of MCP calls for a guard, or nil if t is nil. It can record tool
// arguments.
func (t *Traces) Calls(arguments bool) mcpresource.Tracer {
	if t == nil {
		return nil
	}
	return otelmcp.New(t.provider, otelmcp.Options{Arguments: arguments})
}

// Close sends the remaining spans, within endTime.
func (t *Traces) Close() {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), endTime)
	defer cancel()
	_ = t.sdk.Shutdown(ctx) // failed exports are already counted
}
