package assembly

import (
	"context"
	"log/slog"
	"regexp"
	"sync"
	"time"

	"github.com/mcp-authd/mcp-authd/mcpresource"
	"github.com/mcp-authd/mcp-authd/storage"
)

const (
	noteTimeout = 5 * time.Second
	// maxUnnoted bounds the grants of which a call waits to be written. Beyond it the calls of others
	// are left out until the next minute.
	maxUnnoted = 10_000
)

// toolName is what MCP lets a tool be called (2025-11-25, Tools, "Tool Names"), up to a length that fits on a page.
// An application may ask for a tool of any name, and there need be none: a sentence of its choice is
// not shown to the person.
var toolName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// lastCalls tells the people who allow applications which tool each of them has called last
// (PE-09). A call costs it an entry in memory; what was called is written once a minute, for all
// grants together, and no call waits for that or fails with it.
type lastCalls struct {
	issuer  string // of the grants
	store   storage.LastCalls
	correct func(time.Time) time.Time
	log     *slog.Logger

	mu    sync.Mutex
	calls map[string]storage.ToolCall // not written yet, by grant
}

func (p Parts) lastCalls(issuer string) *lastCalls {
	return &lastCalls{
		issuer: issuer, store: p.Store, correct: p.Store.Correct, log: p.Log, calls: map[string]storage.ToolCall{},
	}
}

// take takes note of a call that has ended, for mcpresource.Config.Calls.
func (l *lastCalls) take(_ context.Context, e mcpresource.CallEvent) {
	p := e.Principal
	if e.Method != "tools/call" || !passed(e.Outcome) || p == nil || p.Issuer != l.issuer {
		return
	}
	grant, call := p.GrantID(), storage.ToolCall{At: l.correct(e.Time)}
	if grant == "" {
		return // of a client for itself
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

// passed reports whether a call got to the MCP server.
func passed(o mcpresource.Outcome) bool {
	switch o {
	case mcpresource.OutcomeOK, mcpresource.OutcomeError, mcpresource.OutcomeAborted, mcpresource.OutcomeEnded,
		mcpresource.OutcomeTimeout:
		return true
	}
	return false
}

// run writes until ctx ends, and then what is left.
func (l *lastCalls) run(ctx context.Context) {
	tick := time.NewTicker(storage.CallNotedEvery)
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

// write writes what was taken. What cannot be written is given up.
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
