package mcpresource

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/mcpresource/internal/logged"
	"github.com/mcp-authd/mcp-authd/mcpresource/internal/rules"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Event describes one decision of the guard. It never contains a token.
type Event struct {
	Time       time.Time
	Took       time.Duration // since the request arrived
	Outcome    Outcome
	Status     int    // of the refusal; 0 when allowed
	Reference  string // as sent to the client, see Decisions; may be ""
	Principal  *Principal
	OpenedBy   string      // the client that opened the session, if it is another client of the same user
	Operations []Operation // methods and names, without arguments
	Method     string      // HTTP
	RemoteAddr string
	Err        error
}

// CallEvent describes one finished call, for Config.Calls and the audit log: who called what, with
// which application and token, and the outcome. It never contains a token.
type CallEvent struct {
	Time       time.Time       // the start of the call
	Duration   time.Duration   // until the response was complete
	Principal  *Principal      // nil for a method that requires no token
	Method     string          // such as "tools/call"
	Name       string          // of the tool or prompt, or the URI, see oauth.Redacted; at most 256 bytes
	Arguments  json.RawMessage // nil unless Config.CallArguments
	Digest     string          // of the arguments: SHA-256 in hex of their JSON without spaces; "" for none
	Outcome    Outcome
	Status     int // HTTP; 0 without a response, or if an adapter reports the call
	RemoteAddr string
	OpenedBy   string // the client that opened the session, if it is another client of the same user
	Reference  string // of a refusal, see Decisions
	Clearance  string // the id of the approval that the call requires or used; may be ""
	Err        error  // of a refusal, for the log
}

// LogCalls returns the default of Config.Calls for a Logger: it logs each call in one line of level
// Info.
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
	e.Took = e.Time.Sub(p.began)
	if e.Principal = p.principal; e.Principal != nil {
		e.OpenedBy = p.caller.openedBy
	}
	for _, m := range p.envelope.Messages {
		e.Operations = append(e.Operations, rules.Recorded(rules.OperationOf(m), false))
	}
	g.c.Audit(e)
}

// LogValue implements slog.LogValuer.
func (e CallEvent) LogValue() slog.Value { return slog.GroupValue(e.attributes()...) }

func (e CallEvent) attributes() []slog.Attr {
	out := []slog.Attr{
		slog.String("method", e.Method), slog.String(nameOf(e.Method), e.Name),
		slog.String("outcome", string(e.Outcome)), slog.Int("status", e.Status),
		slog.Float64("duration_ms", float64(e.Duration.Microseconds())/1000),
		slog.String("remote", logged.Host(e.RemoteAddr)),
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
		out = append(out, slog.String("reason", logged.Reason(e.Err.Error())))
	}
	return out
}

// nameOf returns the log field for the name in a call of method.
func nameOf(method string) string {
	if method == "tools/call" {
		return "tool"
	}
	return "name"
}

// Report records a call in the audit log, for adapters. Unlike the HTTP status, they know whether a
// tool failed. If e has no caller, it is taken from ctx. Arguments are dropped unless
// Config.CallArguments is set. See TakeCalls.
func (g *Guard) Report(ctx context.Context, e CallEvent) {
	if e.Principal == nil {
		e.Principal, _ = FromContext(ctx)
	}
	if e.Principal != nil {
		e.OpenedBy = ""
	}
	if from := callerOf(e.Principal); from != nil {
		e.OpenedBy = from.openedBy
		from.traced.report(e.Outcome)
		call := Operation{Method: e.Method, Name: e.Name, Arguments: e.Arguments}
		if c := from.cleared; c != nil && e.Clearance == "" && c.isFor(call) {
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
	kept := rules.Recorded(Operation{Method: e.Method, Name: e.Name, Arguments: e.Arguments}, g.c.CallArguments)
	e.Method, e.Name, e.Arguments = kept.Method, kept.Name, kept.Arguments
	g.c.Calls(ctx, e)
}

// Digest returns the digest of a call's arguments, see CallEvent. It is "" without arguments.
func Digest(arguments json.RawMessage) string {
	var compact bytes.Buffer
	if len(arguments) == 0 || json.Compact(&compact, arguments) != nil {
		return ""
	}
	sum := sha256.Sum256(compact.Bytes())
	return hex.EncodeToString(sum[:])
}

// TakeCalls declares that the handler of a guarded request reports its calls with Report. ctx is
// the context of that request.
func TakeCalls(ctx context.Context) {
	p, _ := FromContext(ctx)
	if from := callerOf(p); from != nil {
		from.reported.Store(true)
	}
}

// called reports the calls of a message with the outcome in e. Messages that it implies are not
// reported.
func (g *Guard) called(r *http.Request, p *passage, e CallEvent) {
	defer p.caller.traced.end(e.Outcome, e.Status) // after the handler's own reports
	if g.c.Calls == nil || p.caller.reported.Load() {
		return
	}
	for _, m := range p.envelope.Messages {
		if m.Method == "" || m.Implied {
			continue
		}
		e.Time, e.Duration = p.began, g.c.Now().Sub(p.began)
		e.Principal, e.RemoteAddr, e.Clearance = p.principal, r.RemoteAddr, p.clearance
		e.Method, e.Name, e.Arguments = m.Method, m.Name, m.Arguments
		g.Report(r.Context(), e)
	}
}

// actorNames returns the names of a chain for the log, current actor first; "" for an empty chain.
func actorNames(chain []oauth.Actor) string {
	if len(chain) == 0 {
		return ""
	}
	out := make([]string, len(chain))
	for i, a := range chain {
		out[i] = logged.Reason(a.Name())
	}
	return strings.Join(out, " ")
}

// CallKeeper stores tool calls in the audit log of an authorization server. It must not block.
// authserver.Server is one in its own process, and Reporter one in another.
type CallKeeper interface {
	Called(ctx context.Context, c oauth.Call)
}

// KeepCalls returns a function for Config.Calls. It passes tool calls with a known caller to a
// CallKeeper, with a digest of their arguments instead of the arguments. It passes all calls to
// others, such as LogCalls.
func KeepCalls(to CallKeeper, others ...func(context.Context, CallEvent)) func(context.Context, CallEvent) {
	return func(ctx context.Context, e CallEvent) {
		if who, at := e.Principal, addressOf(e.Principal); e.Method == "tools/call" && at != nil {
			to.Called(ctx, oauth.Call{
				At:        e.Time,
				Resource:  at.resource,
				Tool:      e.Name,
				Outcome:   string(e.Outcome),
				Digest:    e.Digest,
				Clearance: e.Clearance,
				Issuer:    who.Issuer,
				TokenID:   who.TokenID,
				GrantID:   who.GrantID(),
				ClientID:  who.ClientID,
				Subject:   who.Subject,
				Address:   logged.Host(e.RemoteAddr),
			})
		}
		for _, take := range others {
			take(ctx, e)
		}
	}
}
