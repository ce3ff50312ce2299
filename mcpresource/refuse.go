package mcpresource

import (
	"encoding/json"
	"log/slog"
	"maps"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/bounded"
	"github.com/mcp-authd/mcp-authd/internal/dpop"
	"github.com/mcp-authd/mcp-authd/internal/mcp"
	"github.com/mcp-authd/mcp-authd/mcpresource/internal/logged"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// refusal is a response of the guard instead of the handler's.
type refusal struct {
	outcome   Outcome
	status    int
	code      int             // JSON-RPC; 0: mcp.CodeRefused
	id        json.RawMessage // of the request, if it could be read
	text      string          // public
	challenge *oauth.BearerChallenge
	data      map[string]any // of the error, in addition to other data
	result    map[string]any // instead of an error
	retry     time.Duration
	allow     string // RFC 9110 §15.5.6
	binding   bool   // the reason is that the token is bound to a key, or that it is not
	reference string // see Decisions
	err       error  // for the log
}

// challenges makes the challenges of refusals.
type challenges struct {
	first oauth.Scopes // for a client without a valid token
	mode  StepUp       // for one that lacks a scope
}

// challenged returns a refusal with a challenge.
func (c challenges) challenged(outcome Outcome, status int, code oauth.Code, text string, err error) *refusal {
	challenge := &oauth.BearerChallenge{Error: code, Description: text}
	if status == http.StatusUnauthorized {
		challenge.Scope = c.first // RS-17
	}
	return &refusal{outcome: outcome, status: status, text: text, challenge: challenge, err: err}
}

// stepUp returns the scopes for the challenge. They never include offline_access, which concerns
// only the client and the authorization server.
func (c challenges) stepUp(r *http.Request, need, granted oauth.Scopes) oauth.Scopes {
	if c.mode == StepUpOperation ||
		c.mode == StepUpByRevision && mcp.IsStateless(first(r.Header, mcp.HeaderVersion)) {
		return need
	}
	return need.Union(granted).Without(oauth.Scopes{oauth.OfflineAccess})
}

type rpcError struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Error   struct {
		Code    int            `json:"code"`
		Message string         `json:"message"`
		Data    map[string]any `json:"data,omitempty"`
	} `json:"error"`
}

// rpcResult is a successful JSON-RPC response.
type rpcResult struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  map[string]any  `json:"result"`
}

// with adds a member to the data of an error, and returns the data.
func with(data map[string]any, name string, value any) map[string]any {
	if data == nil {
		data = map[string]any{}
	}
	data[name] = value
	return data
}

// body returns the refusal as a JSON-RPC error.
func (f *refusal) body() rpcError {
	out := rpcError{Version: "2.0", ID: f.id}
	if out.ID == nil {
		out.ID = json.RawMessage("null")
	}
	out.Error.Code, out.Error.Message = f.code, f.text
	if f.code == 0 {
		out.Error.Code = mcp.CodeRefused
	}
	return out
}

// refuse records a refusal and writes it. The body contains no more information than header and
// status.
func (g *Guard) refuse(w http.ResponseWriter, r *http.Request, p *passage, refused *refusal) {
	refused.err = logged.Redact(refused.err, p.caller.sent.Token)
	refused.reference = g.refer(r, p, refused)
	e := Event{Outcome: refused.outcome, Status: refused.status, Reference: refused.reference, Err: refused.err}
	g.record(r, p, e)
	g.logRefusal(r, p, e, refused.text)
	g.called(r, p, CallEvent{Outcome: e.Outcome, Status: e.Status, Reference: e.Reference, Err: e.Err})
	g.write(w, r, p, refused)
}

func (g *Guard) write(w http.ResponseWriter, r *http.Request, p *passage, refused *refusal) {
	h := w.Header()
	body := refused.body()
	body.Error.Data = maps.Clone(refused.data)
	if reference := refused.reference; reference != "" { // OB-02
		h.Set(headerReference, reference)
		body.Error.Message = refused.text + " Reference: " + reference + "."
		body.Error.Data = with(body.Error.Data, "reference", reference)
	}
	if refused.status == http.StatusForbidden {
		if denial := g.Denial(refused.outcome, refused.reference); denial != nil {
			body.Error.Data = with(body.Error.Data, "authorization", denial)
		}
	}
	if refused.challenge != nil {
		h["Www-Authenticate"] = g.bindings.headers(refused, p)
		if g.bindings.nonces != nil { // so that the next request is the last
			h.Set(dpop.NonceHeader, g.bindings.nonces.At(g.c.Now()))
		}
		if refused.challenge.Error != "" {
			body.Error.Data = with(body.Error.Data, "error", string(refused.challenge.Error))
			if s := refused.challenge.Scope.String(); s != "" {
				body.Error.Data["scope"] = s
			}
		}
	}
	if refused.retry > 0 {
		h.Set("Retry-After", strconv.Itoa(int((refused.retry+time.Second-1)/time.Second)))
	}
	if refused.allow != "" {
		h.Set("Allow", refused.allow)
	}
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	raw, _ := json.Marshal(body) // cannot fail: strings, and an id that was parsed
	if refused.result != nil {
		raw, _ = json.Marshal(rpcResult{body.Version, body.ID, refused.result})
	}
	h.Set("Content-Length", strconv.Itoa(len(raw)))
	w.WriteHeader(refused.status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(raw) // on failure the client has gone
	}
}

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
	if e.Reference != "" {
		attrs = append(attrs, slog.String("request_id", e.Reference))
	}
	if n := g.refused.omitted.Swap(0); n > 0 {
		attrs = append(attrs, slog.Int64("omitted", n))
	}
	g.c.Logger.LogAttrs(r.Context(), level, "request refused", attrs...)
}

const maxLine = 1000 // bytes of a reason in the log
