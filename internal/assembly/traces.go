package assembly

import (
	"context"
	"os"
	"runtime/debug"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/traces"
)

// newTraces returns nil if traces are off. OTEL_SDK_DISABLED also turns them off.
func (p Parts) newTraces(ctx context.Context) (*traces.Traces, error) {
	c := p.Config.Traces
	if !c.Enabled || os.Getenv("OTEL_SDK_DISABLED") == "true" {
		return nil, nil
	}
	sample := c.Sample
	if p.Config.IsDefault("traces.sample") && os.Getenv("OTEL_TRACES_SAMPLER") != "" {
		sample = 0 // as set in the environment
	}
	ring, err := secrets.NewRing(p.Keys...)
	if err != nil {
		return nil, err
	}
	return traces.New(ctx, traces.Config{
		Endpoint: c.Endpoint,
		Headers:  c.Header(),
		Sample:   sample,
		Key:      ring.Key("sample of traces", 32),
		Issuer:   p.Config.Issuer,
		Version:  mainVersion(),
		Logger:   p.Log,
		Told:     p.Metrics.Spans,
	})
}

func mainVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version
	}
	return ""
}

// watchStore reports each verb of the store to metrics and traces, until stop is called.
func (p Parts) watchStore() (stop func()) {
	if p.Metrics == nil && p.traces == nil {
		return func() {}
	}
	follow := func(context.Context, string, time.Time, time.Duration, error) {}
	if p.traces != nil {
		follow = p.traces.Store(p.database())
	}
	return p.Store.Hook(storage.Timed(time.Now,
		func(ctx context.Context, verb string, began time.Time, took time.Duration, err error) {
			p.Metrics.Store(verb, took, err)
			follow(ctx, verb, began, took, err)
		}))
}

// database returns the OpenTelemetry name of the database.
func (p Parts) database() string {
	if p.Config.Postgres() {
		return "postgresql"
	}
	return "sqlite"
}
