package mcpresource

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// Protect returns next behind the guard. It is plain net/http middleware: it never
// buffers a response, and passes on Flush and the like.
func (g *Guard) Protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hurried := g.hurry(w, r)
		pass, refused := g.judge(w, r)
		defer g.release(pass)
		if refused != nil {
			g.refuse(w, r, pass, refused)
			return
		}
		if pass == nil {
			return // a preflight, answered
		}
		if hurried {
			relax(w)
		}
		g.record(r, pass, Event{Outcome: "allowed"})
		g.forward(w, r, pass, next)
	})
}

// passage is what has been found out about a request.
type passage struct {
	principal *Principal // nil for a public method
	presented Credential // what the principal was judged by
	envelope  envelope
	body      []byte
	session   string
	claimed   bool   // this request has bound the session
	reserved  string // Key of the caller for whom a session is reserved
}

// judge takes a request through every check. It returns nil, nil when it has
// answered itself.
func (g *Guard) judge(w http.ResponseWriter, r *http.Request) (*passage, *refusal) {
	p := &passage{session: r.Header.Get("Mcp-Session-Id")}
	if no := g.checkOrigin(r); no != nil {
		return p, no
	}
	if g.crossOrigin(w, r) {
		return nil, nil
	}
	no := g.authenticate(r, p)
	if no != nil && !g.mayBePublic(r, no) {
		return p, no
	}
	anonymous := no
	if no := checkMethod(r); no != nil {
		return p, no
	}
	if no := g.readMessage(w, r, p); no != nil {
		if anonymous != nil {
			return p, anonymous // nothing is said about a body to somebody unknown
		}
		return p, no
	}
	if no := g.authorize(p, anonymous); no != nil {
		return p, no
	}
	if no := g.limit(r.Context(), p); no != nil {
		return p, no
	}
	return p, g.checkSession(r.Context(), p)
}

// mayBePublic reports whether a request without a token is worth reading: only a
// POST can be an operation that the policy leaves open.
func (g *Guard) mayBePublic(r *http.Request, no *refusal) bool {
	rules, ok := g.c.Policy.(*Rules)
	return no.outcome == "unauthenticated" && r.Method == http.MethodPost && (!ok || len(rules.Public) > 0)
}

// authenticate finds the caller (OAuth 2.1 §5.1). A token anywhere but in the header
// is not looked at.
func (g *Guard) authenticate(r *http.Request, p *passage) *refusal {
	values := r.Header.Values("Authorization")
	if len(values) == 0 {
		return &refusal{outcome: "unauthenticated", status: http.StatusUnauthorized, text: "Authentication is required.", challenge: &oauth.BearerChallenge{Scope: g.base}}
	}
	scheme, token, _ := strings.Cut(strings.TrimSpace(values[0]), " ")
	token = strings.TrimSpace(token)
	if len(values) > 1 || token == "" || strings.ContainsAny(token, " \t,") || !strings.EqualFold(scheme, "Bearer") {
		return g.challenged("malformed", http.StatusBadRequest, oauth.InvalidRequest, "The Authorization header is malformed.", nil)
	}
	p.presented = Credential{Scheme: scheme, Token: token, Request: r}
	principal, err := g.c.Validator.Validate(r.Context(), p.presented)
	switch {
	case errors.Is(err, ErrInvalidToken):
		return g.challenged("invalid_token", http.StatusUnauthorized, oauth.InvalidToken, "The access token is not valid.", err)
	case err != nil || principal == nil:
		return &refusal{outcome: "unavailable", status: http.StatusServiceUnavailable, text: "The access token cannot be checked now.", retry: time.Second, err: err}
	}
	if err := g.meant(principal); err != nil {
		return g.challenged("invalid_token", http.StatusUnauthorized, oauth.InvalidToken, "The access token is not valid for this server.", err)
	}
	p.principal = principal
	return nil
}

// meant checks what no validator is trusted with: who issued the token, for whom, and
// until when. A token for another server is 401 and not 403 (OAuth 2.1 §5.3.2).
func (g *Guard) meant(p *Principal) error {
	now := g.c.Now()
	switch {
	case !slices.Contains(g.c.AuthorizationServers, p.Issuer):
		return invalid("issued by another server")
	case !slices.ContainsFunc(p.Audience, g.isAudience):
		return invalid("for another resource")
	case p.ExpiresAt.IsZero() || !now.Before(p.ExpiresAt.Add(g.c.ClockSkew)):
		return invalid("expired")
	}
	return nil
}

func (g *Guard) isAudience(aud string) bool {
	if slices.Contains(g.audiences, aud) {
		return true
	}
	canonical, err := oauth.CanonicalResource(aud)
	return err == nil && slices.Contains(g.audiences, canonical)
}

// singleHeaders decide what a server does; of two that differ, a proxy and the server
// might each believe another.
var singleHeaders = []string{"Mcp-Method", "Mcp-Name", "Mcp-Protocol-Version", "Mcp-Session-Id", "Last-Event-Id", "Content-Type"}

// readMessage reads headers and body of the message.
func (g *Guard) readMessage(w http.ResponseWriter, r *http.Request, p *passage) *refusal {
	for _, h := range singleHeaders {
		if len(r.Header.Values(h)) > 1 {
			return &refusal{outcome: "ambiguous", status: http.StatusBadRequest, code: codeHeaderMismatch, text: "The header " + h + " is repeated."}
		}
	}
	if r.Method != http.MethodPost {
		leave(r)
		return nil
	}
	if !isPlain(r.Header) {
		return &refusal{outcome: "ambiguous", status: http.StatusUnsupportedMediaType, text: "The request body must be UTF-8, without Content-Encoding."}
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, g.c.MaxBodyBytes))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return &refusal{outcome: "too_large", status: http.StatusRequestEntityTooLarge, text: "The request body is too large."}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &refusal{outcome: "too_slow", status: http.StatusRequestTimeout, text: "The request body took too long."}
	case err != nil:
		return &refusal{outcome: "ambiguous", status: http.StatusBadRequest, code: codeParseError, text: "The request body could not be read."}
	}
	p.body = body
	if p.envelope, err = parseEnvelope(body); err != nil {
		return &refusal{outcome: "ambiguous", status: http.StatusBadRequest, code: codeParseError, text: "The request body is malformed or ambiguous.", err: err}
	}
	for _, op := range p.envelope.ops {
		if err := op.check(); err != nil {
			return &refusal{outcome: "ambiguous", status: http.StatusBadRequest, code: codeInvalidParams, id: p.envelope.id, text: "The resource URI is not in its canonical form.", err: err}
		}
	}
	return g.decodeName(r, p)
}

const (
	base64Prefix = "=?base64?"
	base64Suffix = "?="
)

// decodeName decodes a Base64 Mcp-Name, which MCP servers must and not every library
// does (MCP 2026-07-28, Streamable HTTP). The markers are case-sensitive.
func (g *Guard) decodeName(r *http.Request, p *passage) *refusal {
	v := strings.TrimSpace(r.Header.Get("Mcp-Name"))
	encoded, ok := strings.CutPrefix(v, base64Prefix)
	if ok {
		encoded, ok = strings.CutSuffix(encoded, base64Suffix)
	}
	if !ok {
		return nil
	}
	name, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if err != nil || !utf8.Valid(name) || strings.ContainsAny(string(name), "\r\n\x00") {
		return &refusal{outcome: "ambiguous", status: http.StatusBadRequest, code: codeHeaderMismatch, id: p.envelope.id, text: "The header Mcp-Name is not valid Base64."}
	}
	r.Header.Set("Mcp-Name", string(name))
	return nil
}

// authorize asks the policy about every operation of the message. One challenge names
// every scope of all of them, so that one step-up is enough, and, for clients that
// replace their scopes instead of adding to them, the relevant ones they hold already.
func (g *Guard) authorize(p *passage, anonymous *refusal) *refusal {
	need := oauth.Scopes(g.base)
	var lacking *ScopeError
	ops := p.envelope.ops
	if len(ops) == 0 {
		ops = []Operation{{}} // a GET or DELETE: what every operation needs
	}
	for _, op := range ops {
		want := g.c.Policy.Require(op)
		if want.Public {
			continue
		}
		if anonymous != nil {
			return anonymous
		}
		if !need.Has(want.Scopes...) {
			need = need.Union(want.Scopes)
		}
		scope := g.sufficient(p.principal, want)
		if scope != nil && (lacking == nil || scope.Denied) {
			lacking = scope
		}
	}
	switch {
	case lacking == nil:
		return nil
	case lacking.Denied:
		return &refusal{outcome: "insufficient_scope", status: http.StatusForbidden, id: p.envelope.id, text: "This operation is not permitted.", err: lacking}
	}
	no := g.challenged("insufficient_scope", http.StatusForbidden, oauth.InsufficientScope, "This operation needs more scope.", lacking)
	no.challenge.Scope, no.id = need, p.envelope.id
	return no
}

func (g *Guard) limit(ctx context.Context, p *passage) *refusal {
	if g.c.Limiter == nil || p.principal == nil {
		return nil
	}
	for _, op := range p.envelope.ops {
		if wait, ok := g.c.Limiter.Allow(ctx, p.principal, op); !ok {
			return &refusal{outcome: "limited", status: http.StatusTooManyRequests, id: p.envelope.id, text: "Too many requests.", retry: max(wait, time.Second)}
		}
	}
	return nil
}

// forward hands the request on: with the caller in the context, without the token, and
// for as long as the token lasts.
func (g *Guard) forward(w http.ResponseWriter, r *http.Request, p *passage, next http.Handler) {
	ctx := NewContext(r.Context(), p.principal.holding(p.presented))
	if p.principal != nil {
		var done func()
		ctx, done = g.lifetime(ctx, p)
		defer done()
	}
	out := r.Clone(ctx)
	out.Header.Del("Authorization")
	for _, h := range overrides {
		out.Header.Del(h)
	}
	// Only what has been judged goes on: no body but that of a POST.
	out.Body, out.ContentLength, out.TransferEncoding, out.Trailer = http.NoBody, 0, nil, nil
	if p.body != nil {
		out.Body = io.NopCloser(bytes.NewReader(p.body))
		out.ContentLength = int64(len(p.body))
	}
	next.ServeHTTP(&watcher{ResponseWriter: w, guard: g, request: r, passage: p}, out)
	if err := endedEarly(ctx); err != nil {
		g.record(r, p, Event{Outcome: "ended", Err: err})
	}
	if r.Method == http.MethodDelete && p.session != "" {
		if err := g.c.Sessions.Release(ctx, p.session); err != nil {
			g.c.Logger.WarnContext(ctx, "session not released", "error", err)
		}
	}
}
