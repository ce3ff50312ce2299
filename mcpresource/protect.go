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
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/mcp-authd/mcp-authd/internal/mcp"
	"github.com/mcp-authd/mcp-authd/mcpresource/internal/message"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Protect returns next behind the guard. It is plain net/http middleware: it never
// buffers a response, and passes on Flush and the like.
func (g *Guard) Protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		growStack(len(r.Header))
		hurried := g.hurry(w, r)
		pass, refused := g.judge(w, r)
		defer g.release(pass)
		if !g.goesOn(w, r, pass, refused) {
			return
		}
		if hurried {
			relax(w)
		}
		g.forward(w, r, pass, next)
	})
}

// goesOn says what came of the checks, and reports whether the request goes on.
func (g *Guard) goesOn(w http.ResponseWriter, r *http.Request, p *passage, refused *refusal) bool {
	switch {
	case refused != nil:
		g.refuse(w, r, p, refused)
		return false
	case p == nil: // a preflight, answered
		return false
	}
	g.record(r, p, Event{Outcome: "allowed"})
	return true
}

// passage is what has been found out about a request.
type passage struct {
	began     time.Time
	principal *Principal // nil for a public method
	presented Credential // what the principal was judged by
	envelope  message.Envelope
	body      []byte
	session   string
	owner     Binding     // of the session
	reserved  string      // who has a session reserved
	underway  string      // who has this request counted
	held      int64       // bytes of the body that are counted
	calls     atomic.Bool // are reported by the handler
	bound     bool        // the token is, and was refused for that, or should be
	nonce     string      // for the next proof
}

// judge takes a request through every check. It returns nil, nil when it has
// answered itself.
func (g *Guard) judge(w http.ResponseWriter, r *http.Request) (*passage, *refusal) {
	p := &passage{began: g.c.Now(), session: sessionOf(r)}
	if no := g.checkOrigin(r); no != nil {
		return p, no
	}
	if g.crossOrigin(w, r) {
		return nil, nil
	}
	no := g.authenticate(r, p)
	if p.nonce != "" {
		w.Header().Set("DPoP-Nonce", p.nonce)
	}
	if no != nil && !g.mayBePublic(r, no) {
		return p, g.estrange(r, p, no)
	}
	anonymous := no
	if no := g.begin(p); no != nil {
		return p, no
	}
	if no := checkMethod(r); no != nil {
		return p, no
	}
	if no := g.readMessage(w, r, p); no != nil {
		if anonymous != nil {
			return p, g.estrange(r, p, anonymous) // nothing is said about a body to somebody unknown
		}
		return p, no
	}
	if no := g.authorize(r, p, anonymous); no != nil {
		return p, g.estrange(r, p, no)
	}
	if no := g.rate(r.Context(), p); no != nil {
		return p, no
	}
	if no := g.check(r.Context(), p); no != nil {
		return p, no
	}
	return p, g.checkSession(r.Context(), p)
}

// mayBePublic reports whether a request without a token is worth reading: only a
// POST can be an operation that the policy leaves open.
func (g *Guard) mayBePublic(r *http.Request, no *refusal) bool {
	rules, ok := g.c.Policy.(*Rules)
	return no.outcome == "unauthenticated" && r.Method == http.MethodPost && (!ok || len(rules.Public) > 0 || rules.Refine != nil)
}

// errTwoGuards would otherwise look like a missing token, for every request.
var errTwoGuards = errors.New("this guard stands behind another one, which has taken the token out of the request: take one of them away")

// authenticate finds the caller (OAuth 2.1 §5.1). A token anywhere but in the header
// is not looked at.
func (g *Guard) authenticate(r *http.Request, p *passage) *refusal {
	values := r.Header.Values("Authorization")
	if _, guarded := FromContext(r.Context()); guarded && len(values) == 0 {
		return &refusal{outcome: "misconfigured", status: http.StatusInternalServerError, text: "The server is not set up right.", err: errTwoGuards}
	}
	if len(values) == 0 {
		return &refusal{outcome: "unauthenticated", status: http.StatusUnauthorized, text: "Authentication is required.", challenge: &oauth.BearerChallenge{Scope: g.c.FirstScopes}}
	}
	scheme, token, _ := strings.Cut(strings.TrimSpace(values[0]), " ")
	token = strings.TrimSpace(token)
	known := strings.EqualFold(scheme, "Bearer") || strings.EqualFold(scheme, "DPoP")
	if len(values) > 1 || token == "" || strings.ContainsAny(token, " \t,") || !known {
		return g.challenged("malformed", http.StatusBadRequest, oauth.InvalidRequest, "The Authorization header is malformed.", nil)
	}
	p.presented = Credential{Scheme: scheme, Token: token, Request: r}
	principal, err := g.c.Validator.Validate(r.Context(), p.presented)
	switch {
	case (err != nil || principal == nil) && outage(err):
		return &refusal{outcome: "unavailable", status: http.StatusServiceUnavailable, text: "The access token cannot be checked now.", retry: time.Second, err: err}
	case err != nil:
		return g.challenged("invalid_token", http.StatusUnauthorized, oauth.InvalidToken, "The access token is not valid.", err)
	}
	if err := g.meant(principal); err != nil {
		return g.challenged("invalid_token", http.StatusUnauthorized, oauth.InvalidToken, "The access token is not valid for this server.", err)
	}
	if no := g.confirm(r, p, principal); no != nil {
		return no
	}
	own := *principal // that of a validator is shared
	own.again, own.reported = g.validateAgain(p.presented), &p.calls
	p.principal = &own
	return nil
}

// meant checks what no validator is trusted with: who issued the token, to whom, for what
// server, and until when. A token for another server is 401 and not 403 (OAuth 2.1 §5.3.2).
func (g *Guard) meant(p *Principal) error {
	now := g.c.Now()
	switch {
	case !slices.Contains(g.c.AuthorizationServers, p.Issuer):
		return invalid("issued by another server")
	case !slices.ContainsFunc(p.Audience, g.isAudience):
		return invalid("for another resource")
	case p.ExpiresAt.IsZero() || !now.Before(p.ExpiresAt.Add(g.c.ClockSkew)):
		return invalid("expired")
	case p.Subject == "" && p.ClientID == "":
		return invalid("nobody's: all such callers would be one")
	case strings.IndexByte(p.Subject, 0) >= 0 || strings.IndexByte(p.ClientID, 0) >= 0:
		return invalid("a name that could be two callers, see Key")
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
// might each believe another. They are canonical.
var singleHeaders = []string{mcp.HeaderMethod, mcp.HeaderName, mcp.HeaderVersion, mcp.HeaderSession, mcp.HeaderLastEvent, "Content-Type"}

// readMessage reads headers and body of the message.
func (g *Guard) readMessage(w http.ResponseWriter, r *http.Request, p *passage) *refusal {
	if r.Method != http.MethodPost {
		leave(r)
		return repeated(r, p)
	}
	if !isPlainText(r.Header) {
		return &refusal{outcome: "ambiguous", status: http.StatusUnsupportedMediaType, code: mcp.CodeInvalidRequest, text: "The request body has to be UTF-8, without Content-Encoding."}
	}
	body, err := io.ReadAll(counted{http.MaxBytesReader(w, r.Body, g.c.MaxBodyBytes), g.c.Bodies, p})
	if no := p.crowded(err); no != nil {
		return no
	}
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return &refusal{outcome: "too_large", status: http.StatusRequestEntityTooLarge, text: "The request body is too large."}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &refusal{outcome: "too_slow", status: http.StatusRequestTimeout, text: "The request body took too long."}
	case err != nil:
		return &refusal{outcome: "ambiguous", status: http.StatusBadRequest, code: mcp.CodeParse, text: "The request body could not be read."}
	}
	p.body = body
	p.envelope, err = message.Parse(body)
	switch {
	case errors.Is(err, message.ErrEmptyBatch):
		return &refusal{outcome: "ambiguous", status: http.StatusBadRequest, code: mcp.CodeInvalidRequest, text: "A batch has at least one message.", err: ambiguous(err)}
	case err != nil:
		return &refusal{outcome: "ambiguous", status: http.StatusBadRequest, code: mcp.CodeParse, text: "The request body is malformed or ambiguous.", err: ambiguous(err)}
	}
	if no := repeated(r, p); no != nil {
		return no
	}
	for _, m := range p.envelope.Messages {
		if err := operationOf(m).checkURI(); err != nil {
			return &refusal{outcome: "ambiguous", status: http.StatusBadRequest, code: mcp.CodeInvalidParams, id: p.envelope.ID, text: "The resource URI is not in its canonical form.", err: err}
		}
	}
	if no := g.decodeName(r, p); no != nil {
		return no
	}
	return compare(r, p)
}

// repeated refuses a second value of what decides. It comes after the body because the
// answer names the request (MCP 2026-07-28, Streamable HTTP, "Server Validation").
func repeated(r *http.Request, p *passage) *refusal {
	for _, h := range singleHeaders {
		if len(r.Header[h]) > 1 {
			return &refusal{outcome: "ambiguous", status: http.StatusBadRequest, code: mcp.CodeHeaderMismatch, id: p.envelope.ID, text: "The header " + h + " is repeated."}
		}
	}
	return nil
}

const (
	base64Prefix = "=?base64?"
	base64Suffix = "?="
)

// decodeName decodes a Base64 Mcp-Name, which MCP servers must and not every library
// does (MCP 2026-07-28, Streamable HTTP). The markers are case-sensitive.
func (g *Guard) decodeName(r *http.Request, p *passage) *refusal {
	v := strings.TrimSpace(r.Header.Get(mcp.HeaderName))
	encoded, ok := strings.CutPrefix(v, base64Prefix)
	if ok {
		encoded, ok = strings.CutSuffix(encoded, base64Suffix)
	}
	if !ok {
		return nil
	}
	name, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if err != nil || !utf8.Valid(name) || strings.ContainsAny(string(name), "\r\n\x00") {
		return &refusal{outcome: "ambiguous", status: http.StatusBadRequest, code: mcp.CodeHeaderMismatch, id: p.envelope.ID, text: "The header Mcp-Name is not valid Base64."}
	}
	r.Header.Set(mcp.HeaderName, string(name))
	return nil
}

// forward hands the request on: with the caller in the context, without the token, and
// for as long as the token lasts.
func (g *Guard) forward(w http.ResponseWriter, r *http.Request, p *passage, next http.Handler) {
	ctx, end := context.WithCancelCause(NewContext(r.Context(), p.principal.holding(p.presented)))
	defer end(nil)
	ctx, done := g.lifetime(ctx, end, p)
	defer done()
	watched := &watcher{ResponseWriter: w, guard: g, request: r, passage: p, end: end}
	g.serve(ctx, watched, p.outgoing(ctx, r), next)
	if r.Method == http.MethodDelete && p.session != "" && watched.gone() {
		g.forget(ctx, p.session, p.owner)
	}
}

// outgoing is the request as it goes on. Only what has been judged does: no body but that of
// a POST.
func (p *passage) outgoing(ctx context.Context, r *http.Request) *http.Request {
	out, target := r.WithContext(ctx), *r.URL
	out.Header, out.URL = p.headers(r.Header), &target
	out.Body, out.ContentLength, out.TransferEncoding, out.Trailer = http.NoBody, 0, nil, nil
	if p.body != nil {
		out.Body = io.NopCloser(bytes.NewReader(p.body))
		out.ContentLength = int64(len(p.body))
	}
	return out
}

// headers are those that go on: a copy, in which nothing is that the guard alone has use for.
func (p *passage) headers(in http.Header) http.Header {
	n := 0
	for _, values := range in {
		n += len(values)
	}
	out, all := make(http.Header, len(in)+4), make([]string, 0, n) // some are added on the way
	for name, values := range in {
		if p.keeps(name) {
			continue
		}
		from := len(all)
		all = append(all, values...)
		out[name] = all[from:len(all):len(all)]
	}
	return out
}

// keeps reports whether a header ends at the guard.
func (p *passage) keeps(name string) bool {
	switch name {
	case "Authorization", "Dpop":
		return true
	case mcp.HeaderSession:
		// A server that does not ignore it would use a session that nobody has judged.
		return p.session == ""
	}
	return slices.Contains(overrides, name)
}

// serve runs the handler and says how that ended.
func (g *Guard) serve(ctx context.Context, w *watcher, out *http.Request, next http.Handler) {
	finished := false
	defer func() { g.conclude(ctx, w, finished) }()
	next.ServeHTTP(w, out)
	finished = true
}
