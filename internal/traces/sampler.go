package traces

import (
	"crypto/hmac"
	crand "crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/mcp-authd/mcp-authd/internal/bounded"
)

// sampler selects traces by a keyed digest of their IDs, so servers with the same key select the
// same traces. Callers choose the sampled flag and the trace ID: the flag is ignored, and the
// digest is unpredictable. If very many requests repeat an ID, each is selected at random.
type sampler struct {
	part  float64
	key   []byte
	named *bounded.Limiter[trace.TraceID]
}

// perTrace limits the requests per trace ID that are selected by digest.
var perTrace = bounded.PerSecond(1, 100)

// maxTraces limits the counted trace IDs.
const maxTraces = 10_000

func newSampler(part float64, key []byte) sdk.Sampler {
	if part >= 1 {
		return sdk.AlwaysSample()
	}
	if len(key) == 0 {
		key = []byte(crand.Text())
	}
	s := &sampler{part: part, key: key, named: bounded.NewLimiter[trace.TraceID](maxTraces, time.Now)}
	return sdk.ParentBased(s, sdk.WithRemoteParentSampled(s), sdk.WithRemoteParentNotSampled(s))
}

// ShouldSample implements sdk.Sampler.
func (s *sampler) ShouldSample(p sdk.SamplingParameters) sdk.SamplingResult {
	parent := trace.SpanContextFromContext(p.ParentContext)
	out := sdk.SamplingResult{Decision: sdk.Drop, Tracestate: parent.TraceState()}
	at := s.place(p.TraceID)
	if parent.IsRemote() && s.named.Take(bounded.Draw[trace.TraceID]{Key: p.TraceID, Rate: perTrace}) > 0 {
		at = rand.Float64()
	}
	if at < s.part {
		out.Decision = sdk.RecordAndSample
	}
	return out
}

// place maps a trace ID to a number from 0 to 1.
func (s *sampler) place(id trace.TraceID) float64 {
	mac := hmac.New(sha256.New, s.key)
	mac.Write(id[:])
	return float64(binary.BigEndian.Uint64(mac.Sum(nil))) / math.MaxUint64
}

// Description implements sdk.Sampler.
func (s *sampler) Description() string { return "part of the traces, by a key" }
