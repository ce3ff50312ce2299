package assembly

import (
	"context"
	"os"
	"runtime/debug"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/traces"
	"github.com/mcp-authd/mcp-authd/storage"
	"github.com/mcp-authd/mcp-authd/storage/timed"
)

// newTraces returns nil where they are off. OTEL_SDK_DISABLED switches them off as well.
func (p Parts) newTraces(ctx context.Context) (*traces.Traces, error) {
	c := p.Config.Traces
	if !c.Enabled || os.Getenv("OTEL_SDK_DISABLED") == "true" {
		return nil, nil
	}
	sample := c.Sample
	if p.Config.IsDefault("traces.sample") && os.Getenv("OTEL_TRACES_SAMPLER") != "" {
		sample = 0 // as the environment has it
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

// watched is the store with all that is told of its verbs.
func (p Parts) watched() storage.Store {
	if p.Metrics == nil && p.traces == nil {
		return p.Store
	}
	follow := func(context.Context, string, time.Time, time.Duration, error) {}
	if p.traces != nil {
		follow = p.traces.Store(p.database())
	}
	return timed.New(p.Store, time.Now,
		func(ctx context.Context, verb string, began time.Time, took time.Duration, err error) {
			p.Metrics.Store(verb, took, err)
			follow(ctx, verb, began, took, err)
		})
}

// database is what the conventions of OpenTelemetry call it.
func (p Parts) database() string {
	if p.Config.Postgres() {
		return "postgresql"
	}
	return "sqlite"
}
