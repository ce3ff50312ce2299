package traces

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// queue limits and counts waiting spans before the SDK's queue, which drops spans without a count.
// outlet counts sent and failed spans.
type queue struct {
	sdk.SpanProcessor
	out *outlet
}

func newQueue(out *outlet) *queue {
	return &queue{
		sdk.NewBatchSpanProcessor(out, sdk.WithMaxQueueSize(waiting), sdk.WithMaxExportBatchSize(batch)), out,
	}
}

// OnEnd implements sdk.SpanProcessor. It never waits for the collector.
func (q *queue) OnEnd(s sdk.ReadOnlySpan) {
	if !s.SpanContext().IsSampled() {
		return
	}
	if q.out.waiting.Add(1) > waiting {
		q.out.waiting.Add(-1)
		q.out.told(Dropped, 1)
		return
	}
	q.SpanProcessor.OnEnd(s)
}

// outlet exports spans, and hides errors from the SDK, which would print them.
type outlet struct {
	sdk.SpanExporter
	told    func(result string, spans int)
	log     *slog.Logger
	now     func() time.Time
	waiting atomic.Int64 // spans in the queue or being sent

	mu      sync.Mutex
	silence time.Time // no errors are logged before
}

// The limits for logged errors.
const (
	complainEvery = time.Minute // at most one log line per minute
	maxError      = 300         // bytes
)

// ExportSpans implements sdk.SpanExporter.
func (o *outlet) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	err := o.SpanExporter.ExportSpans(ctx, spans)
	o.waiting.Add(-int64(len(spans)))
	if err != nil {
		o.told(Failed, len(spans))
		o.complain(err)
		return nil
	}
	o.told(Sent, len(spans))
	return nil
}

func (o *outlet) complain(err error) {
	o.mu.Lock()
	now := o.now()
	quiet := now.Before(o.silence)
	if !quiet {
		o.silence = now.Add(complainEvery)
	}
	o.mu.Unlock()
	if quiet {
		return
	}
	text := err.Error() // contains the collector's response
	o.log.Warn("spans are not sent", "error", strings.ToValidUTF8(text[:min(len(text), maxError)], ""))
}
