package mcpresource

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/mcpresource/internal/message"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Event is one decision of the guard. It never holds a token.
type Event struct {
	Time       time.Time
	Took       time.Duration // since the request came
	Outcome    Outcome
	Status     int    // of the refusal; 0 when allowed
	Reference  string // that the client was told, see Decisions; "": none
	Principal  *Principal
	OpenedBy   string      // the client that opened the session, when it is another one of the same person
	Operations []Operation // methods and names; arguments are left out
	Method     string      // HTTP
	RemoteAddr string
	Err        error
}

// CallEvent is one call, as the audit keeps it when the call has ended: who did what, by which
// application and token, and how it ended. It never holds a token. Config.Calls gets it.
type CallEvent struct {
	Time       time.Time       // when it began
	Duration   time.Duration   // until the answer was complete
	Principal  *Principal      // nil for a method that needs no token
	Method     string          // such as "tools/call"
	Name       string          // of the tool or prompt, or the URI, see oauth.Redacted; cut after 256 bytes
	Arguments  json.RawMessage // nil unless Config.CallArguments
	Digest     string          // of the arguments: SHA-256 in hex of their JSON without spaces; "" for none
	Outcome    Outcome
	Status     int // HTTP; 0 when nothing was answered, or an adapter reports
	RemoteAddr string
	OpenedBy   string // the client that opened the session, when it is another one of the same person
	Reference  string // of a refusal, see Decisions
	Clearance  string // the id of the permission of a person that the call needs, or was let through by; "" for none
	Err        error  // of a refusal, for the log
}

// LogCalls returns what Config.Calls is by default when there is a Logger: a line of
// level Info for each call.
func LogCalls(log *slog.Logger) func(context.Context, CallEvent) {
	return func(ctx context.Context, e CallEvent) {
		if !log.Enabled(ctx, slog.LevelInfo) {
			return
		}
		log.LogAttrs(ctx, slog.LevelInfo, "call", e.attributes()...)
	}
}

func (g *Guard) record(r *http.Request, p *passage, e Event) {
	if g.c.Audit == nil {
		return
	}
	e.Time, e.Method, e.RemoteAddr = g.c.Now(), r.Method, r.RemoteAddr
	e.Took, e.Reference = e.Time.Sub(p.began), p.reference
	if e.Principal = p.principal; e.Principal != nil {
		e.OpenedBy = e.Principal.openedBy
	}
	for _, m := range p.envelope.Messages {
		e.Operations = append(e.Operations, operationOf(m).record(false))
	}
	g.c.Audit(e)
}

// LogValue implements slog.LogValuer.
func (e CallEvent) LogValue() slog.Value { return slog.GroupValue(e.attributes()...) }

func (e CallEvent) attributes() []slog.Attr {
	out := []slog.Attr{
		slog.String("method", e.Method), slog.String(nameOf(e.Method), e.Name),
		slog.String("outcome", string(e.Outcome)), slog.Int("status", e.Status),
		slog.Float64("duration_ms", float64(e.Duration.Microseconds())/1000), slog.String("remote", host(e.RemoteAddr)),
	}
	if p := e.Principal; p != nil {
		out = append(out, slog.String("issuer", p.Issuer), slog.String("user", p.Subject),
			slog.String("client_id", p.ClientID), slog.String("jti", p.TokenID))
		if names := actorNames(p.Actors()); names != "" {
			out = append(out, slog.String("actors", names))
		}
	}
	if e.OpenedBy != "" {
		out = append(out, slog.String("opened_by", e.OpenedBy))
	}
	if e.Reference != "" {
		out = append(out, slog.String("request_id", e.Reference))
	}
	if e.Clearance != "" {
		out = append(out, slog.String("clearance", e.Clearance))
	}
	if e.Arguments != nil {
		out = append(out, slog.String("arguments", string(e.Arguments)))
	}
	if e.Err != nil {
		out = append(out, slog.String("reason", cutText(e.Err.Error())))
	}
	return out
}

// nameOf is the field that holds what a method is called with.
func nameOf(method string) string {
	if method == "tools/call" {
		return "tool"
	}
	return "name"
}

// cutText bounds what a caller may have chosen.
func cutText(s string) string {
	if len(s) <= maxReason {
		return s
	}
	return strings.ToValidUTF8(s[:maxReason], "") + "..."
}

const maxReason = 300 // bytes

// host is an address without its port.
func host(addr string) string {
	if ap, err := netip.ParseAddrPort(addr); err == nil {
		return ap.Addr().Unmap().String()
	}
	return addr
}

// Report tells the audit of a call, for adapters: they know whether a tool failed, which
// the HTTP status does not say. The caller is that of ctx unless e names one; Arguments
// are dropped unless Config.CallArguments. See TakeCalls.
func (g *Guard) Report(ctx context.Context, e CallEvent) {
	if e.Principal == nil {
		e.Principal, _ = FromContext(ctx)
	}
	if e.Principal != nil {
		e.OpenedBy = e.Principal.openedBy
		e.Principal.traced.report(e.Outcome)
		call := Operation{Method: e.Method, Name: e.Name, Arguments: e.Arguments}
		if c := e.Principal.cleared; c != nil && e.Clearance == "" && c.isFor(call) {
			e.Clearance = c.id
		}
	}
	if g.c.Calls == nil {
		return
	}
	if e.Time.IsZero() {
		e.Time = g.c.Now().Add(-e.Duration)
	}
	e.Digest = Digest(e.Arguments)
	kept := Operation{Method: e.Method, Name: e.Name, Arguments: e.Arguments}.record(g.c.CallArguments)
	e.Method, e.Name, e.Arguments = kept.Method, kept.Name, kept.Arguments
	g.c.Calls(ctx, e)
}

// Digest names the arguments of a call without saying what they are: see CallEvent.
func Digest(arguments json.RawMessage) string {
	var compact bytes.Buffer
	if len(arguments) == 0 || json.Compact(&compact, arguments) != nil {
		return ""
	}
	sum := sha256.Sum256(compact.Bytes())
	return hex.EncodeToString(sum[:])
}

// TakeCalls tells the guard that the handler of this request, which has passed it,
// reports its calls by Report; ctx is that of the request.
func TakeCalls(ctx context.Context) {
	if p, ok := FromContext(ctx); ok && p.reported != nil {
		p.reported.Store(true)
	}
}

// called reports the calls of a message. What a call amounts to beyond itself is no call.
func (g *Guard) called(r *http.Request, p *passage, outcome Outcome, status int, err error) {
	defer p.traced.end(outcome, status) // after the handler has reported
	if g.c.Calls == nil || p.calls.Load() {
		return
	}
	for _, m := range p.envelope.Messages {
		if m.Method == "" || m.Implied {
			continue
		}
		g.Report(r.Context(), CallEvent{
			Time: p.began, Duration: g.c.Now().Sub(p.began), Principal: p.principal, Method: m.Method, Name: m.Name,
			Arguments: m.Arguments,
			Outcome:   outcome, Status: status, RemoteAddr: r.RemoteAddr, Reference: p.reference,
			Clearance: p.clearance, Err: err,
		})
	}
}

// record is what the audit may keep of an operation: arguments when asked, and of a
// a name no more than a caller could have meant. URIs of resources are redacted.
func (op Operation) record(arguments bool) Operation {
	const longest = 256
	name := op.Name
	if message.IsResource(op.Method) {
		name = oauth.Redacted(name)
	}
	out := Operation{Method: cut(op.Method, longest), Name: cut(name, longest)}
	if arguments {
		out.Arguments = slices.Clone(op.Arguments)
	}
	return out
}

func cut(s string, longest int) string {
	if len(s) > longest {
		return strings.ToValidUTF8(s[:longest], "") + "…"
	}
	return s
}
