package assembly

import (
	"context"
	"log/slog"
	"regexp"
	"sync"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/mcpresource"
)

const (
	noteEvery   = time.Minute
	noteTimeout = 5 * time.Second
	// maxUnnoted limits how many grants have an unwritten call. Further ones are dropped until the
	// next write.
	maxUnnoted = 10_000
)

// toolName matches the names that MCP recommends for tools (2025-11-25, Tools, "Tool Names"), up to
// a length that fits on a page. A client can call a tool by any name, even if no such tool exists,
// so the page must not show arbitrary sentences. A name without spaces is shown in quotation marks,
// truncated.
var toolName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// lastCalls collects the last tool call of each grant for the account page (PE-09). A call adds an
// entry in memory. All entries are written together once a minute. No call waits for a write, or
// fails because of one.
type lastCalls struct {
	issuer  string // of the grants
	store   storage.LastCalls
	correct func(time.Time) time.Time
	log     *slog.Logger

	mu    sync.Mutex
	calls map[string]storage.ToolCall // not yet written, by grant
}

func (p Parts) lastCalls(issuer string) *lastCalls {
	return &lastCalls{
		issuer: issuer, store: p.Store, correct: p.Store.Correct, log: p.Log, calls: map[string]storage.ToolCall{},
	}
}

// take records a finished call; it is an mcpresource.Config.Calls.
func (l *lastCalls) take(_ context.Context, e mcpresource.CallEvent) {
	p := e.Principal
	if e.Method != "tools/call" || !passed(e.Outcome) || p == nil || p.Issuer != l.issuer {
		return
	}
	grant, call := p.GrantID(), storage.ToolCall{At: l.correct(e.Time)}
	if grant == "" {
		return // a client that acts for itself
	}
	if toolName.MatchString(e.Name) {
		call.Tool = e.Name
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	before, known := l.calls[grant]
	if !known && len(l.calls) == maxUnnoted || call.At.Before(before.At) {
		return
	}
	l.calls[grant] = call
}

// passed reports whether a call reached the MCP server.
func passed(o mcpresource.Outcome) bool {
	switch o {
	case mcpresource.OutcomeOK, mcpresource.OutcomeError, mcpresource.OutcomeAborted, mcpresource.OutcomeEnded,
		mcpresource.OutcomeStopped, mcpresource.OutcomeTimeout:
		return true
	}
	return false
}

// run writes until ctx ends, and then writes the rest.
func (l *lastCalls) run(ctx context.Context) {
	tick := time.NewTicker(noteEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			l.write(ctx)
		case <-ctx.Done():
			l.write(context.WithoutCancel(ctx))
			return
		}
	}
}

// write stores the collected calls. Calls that cannot be stored are lost.
func (l *lastCalls) write(ctx context.Context) {
	l.mu.Lock()
	calls := l.calls
	l.calls = map[string]storage.ToolCall{}
	l.mu.Unlock()
	if len(calls) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, noteTimeout)
	defer cancel()
	if err := l.store.NoteCalls(ctx, calls); err != nil {
		l.log.WarnContext(ctx, "the last tool calls of some applications are not on account pages", "error", err)
	}
}
