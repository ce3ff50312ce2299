package assembly

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/mcp-authd/mcp-authd/authserver"
	"github.com/mcp-authd/mcp-authd/internal/bounded"
	"github.com/mcp-authd/mcp-authd/internal/metrics"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/mcpresource"
)

const (
	measureEvery   = 15 * time.Second
	measureTimeout = 5 * time.Second
)

// countAnswered is an authserver.Config.Answered.
func (p Parts) countAnswered(a authserver.Answered) {
	p.Metrics.Request(a.Endpoint, a.Status, a.Took)
	if a.Begins {
		p.Metrics.Step(metrics.StepStarted)
	}
}

func (p Parts) countLookup(hit bool) { p.Metrics.Cache(metrics.CacheTokens, hit) }

// countDecision counts the decision of a guard. A token that expires later does not change the
// decision.
func (p Parts) countDecision(e mcpresource.Event) {
	if e.Outcome != mcpresource.OutcomeEnded {
		p.Metrics.Guard(string(e.Outcome), e.Took)
	}
}

// countCall returns an mcpresource.Config.Calls that counts tool calls.
func (p Parts) countCall(resource string, first *firstCalls) func(context.Context, mcpresource.CallEvent) {
	return func(_ context.Context, e mcpresource.CallEvent) {
		if e.Method != "tools/call" || !passed(e.Outcome) {
			return
		}
		p.Metrics.ToolCall(resource, string(e.Outcome), e.Duration)
		if first.take(e) {
			p.Metrics.Step(metrics.StepCalled)
		}
	}
}

const (
	// youth is the maximum age of a grant whose call can be its first one. After a restart, it is
	// unknown which grants have called before.
	youth = time.Hour
	// maxFirst limits the remembered grants.
	maxFirst = 10_000
)

// firstCalls remembers which grants have called a tool in this process.
type firstCalls struct {
	issuer string // of the grants
	now    func() time.Time
	called *bounded.Map[string, struct{}]
}

func newFirstCalls(issuer string, now func() time.Time) *firstCalls {
	return &firstCalls{issuer, now, bounded.New[string, struct{}](maxFirst, now)}
}

// take reports whether a call is the first one of a young grant.
func (f *firstCalls) take(e mcpresource.CallEvent) bool {
	p := e.Principal
	if p == nil || p.Issuer != f.issuer {
		return false
	}
	made, ok := secrets.TimeOf(p.GrantID())
	if !ok || f.now().Sub(made) > youth {
		return false
	}
	_, known := f.called.Get(p.GrantID())
	f.called.Put(p.GrantID(), struct{}{}, made.Add(youth))
	return !known
}

// measure sets metrics that are not events, until ctx ends.
func (s *Server) measure(ctx context.Context) {
	if s.parts.Metrics == nil {
		return
	}
	if s.parts.Config.Tokens.StatusTTL > 0 {
		var listed atomic.Int64
		listed.Store(s.parts.Now().UnixMilli())
		go every(ctx, func() {
			if s.Auth.TryStatusList(ctx) == nil {
				listed.Store(s.parts.Now().UnixMilli())
			}
		})
		// In a separate loop, because the age must grow even if a hanging database delays the list.
		go every(ctx, func() {
			s.parts.Metrics.StatusList(max(s.parts.Now().Sub(time.UnixMilli(listed.Load())), 0))
		})
	}
	every(ctx, func() { s.measureKeys(ctx) })
}

// every calls do now and then at intervals, until ctx ends.
func every(ctx context.Context, do func()) {
	for ctx.Err() == nil {
		do()
		select {
		case <-ctx.Done():
		case <-time.After(measureEvery):
		}
	}
}

func (s *Server) measureKeys(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, measureTimeout)
	defer cancel()
	all, err := s.Auth.Keys().List(ctx)
	if err != nil {
		return // the gauges keep their values; failures of the store are counted
	}
	for _, k := range all {
		if k.State == storage.KeyActive && k.Algorithm == s.Auth.Keys().Algorithms()[0] {
			s.parts.Metrics.SigningKey(s.parts.Now().Sub(k.ActivatedAt), time.Duration(s.parts.Config.Keys.RotateEvery))
		}
	}
}
