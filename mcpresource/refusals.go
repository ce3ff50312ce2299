package mcpresource

import (
	"log/slog"
	"net/http"
	"sync/atomic"

	"github.com/mcp-authd/mcp-authd/internal/bounded"
	"github.com/mcp-authd/mcp-authd/mcpresource/internal/logged"
)

// refusalLines limits the log lines for refused requests of each Outcome: anyone can cause them.
var refusalLines = bounded.PerSecond(1, 20)

// refusalLog logs refused requests whose call Config.Calls does not report: Calls receives those,
// with the reason.
type refusalLog struct {
	limit   *bounded.Limiter[Outcome]
	omitted atomic.Int64 // lines since the last one
}

func (g *Guard) logRefusal(r *http.Request, p *passage, e Event, text string) {
	if g.c.Calls != nil && len(p.envelope.Messages) > 0 && e.Status < http.StatusInternalServerError {
		return
	}
	draw := bounded.Draw[Outcome]{Key: e.Outcome, Rate: refusalLines}
	if g.refused.limit.Take(draw) > 0 {
		g.refused.omitted.Add(1)
		return
	}
	level := slog.LevelInfo
	if e.Status >= http.StatusInternalServerError {
		level = slog.LevelWarn
	}
	if e.Err != nil {
		text = e.Err.Error()
	}
	attrs := []slog.Attr{
		slog.String("outcome", string(e.Outcome)), slog.Int("status", e.Status),
		slog.String("http_method", logged.Cut(r.Method, 32)), slog.String("remote", logged.Host(r.RemoteAddr)),
		slog.String("reason", logged.Cut(text, maxLine)),
	}
	if p.reference != "" {
		attrs = append(attrs, slog.String("request_id", p.reference))
	}
	if n := g.refused.omitted.Swap(0); n > 0 {
		attrs = append(attrs, slog.Int64("omitted", n))
	}
	g.c.Logger.LogAttrs(r.Context(), level, "request refused", attrs...)
}

const maxLine = 1000 // bytes of a reason in the log
