package mcpresource

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/mcp-authd/mcp-authd/mcpresource/internal/logged"
	"github.com/mcp-authd/mcp-authd/mcpresource/internal/rules"
	"github.com/mcp-authd/mcp-authd/mcpresource/internal/token"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// told returns a handler that serves the document of a resource and reports reads to Readings.
func (g *Guard) told(resource string, document http.Handler) http.Handler {
	to, ok := g.c.Decisions.(Readings)
	if !ok {
		return document
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			to.Read(r, resource)
		}
		document.ServeHTTP(w, r)
	})
}

const (
	// headerReference carries the reference of a refusal, as in the authorization server's
	// responses.
	headerReference = "X-Request-Id"
	// maxPassed is the maximum number of tokens and grants recorded as let through, each for
	// passedFor.
	maxPassed = 20_000
	passedFor = time.Hour
	// maxReference is the maximum length of a reference in headers.
	maxReference = 64
)

// refer gets a reference for a refusal from Decisions. It goes into a header, which clients may
// ignore, and into the body, which they show. The challenge does not contain it: clients compare
// challenges to detect that another sign-in did not help.
func (g *Guard) refer(r *http.Request, p *passage, refused *refusal) (reference string) {
	if g.c.Decisions == nil || refused.status != http.StatusUnauthorized && refused.status != http.StatusForbidden {
		return ""
	}
	d := g.decision(p, firstOperation(p))
	d.HTTPMethod, d.Status, d.Outcome, d.Description = r.Method, refused.status, string(refused.outcome), refused.text
	if refused.err != nil && refused.outcome != OutcomeForbidden { // Check's errors are not for the operator
		d.Reason = logged.Reason(refused.err.Error())
	}
	if c := refused.challenge; c != nil {
		d.Error, d.Scope = c.Error, c.Scope.String()
	}
	if d.Scheme = p.caller.sent.Scheme; d.Scheme == "" && r.Header.Get("Authorization") != "" {
		d.Scheme = "malformed"
	}
	return g.named(r, d)
}

// letThrough reports an allowed request to Decisions unless its grant was reported recently. It
// also remembers token IDs, because finding the grant requires reading the claims.
func (g *Guard) letThrough(ctx context.Context, p *passage) {
	if g.c.Decisions == nil || p.principal == nil {
		return
	}
	op, kind := firstOperation(p), ""
	if op.Method == "tools/call" {
		kind = " tool"
	}
	until := g.c.Now().Add(passedFor)
	if id := p.principal.TokenID; id != "" && !g.passed.Add(id+kind, struct{}{}, until) {
		return
	}
	d := g.decision(p, op)
	if d.GrantID == "" || !g.passed.Add("grant "+d.GrantID+kind, struct{}{}, until) {
		return
	}
	d.Outcome = string(OutcomeAllowed)
	g.c.Decisions.LetThrough(ctx, d)
}

func (g *Guard) decision(p *passage, op Operation) oauth.Decision {
	op = rules.Recorded(op, false)
	d := oauth.Decision{At: p.began, Resource: p.at.resource, Method: op.Method, Name: op.Name}
	if who := p.principal; who != nil && slices.Contains(g.c.AuthorizationServers, who.Issuer) {
		d.Issuer, d.ClientID, d.GrantID, d.Subject = who.Issuer, who.ClientID, who.GrantID(), who.Subject
	}
	return d
}

// firstOperation returns the first operation of a request, if one was read.
func firstOperation(p *passage) Operation {
	if len(p.envelope.Messages) == 0 {
		return Operation{}
	}
	return rules.OperationOf(p.envelope.Messages[0])
}

func isAlphanumeric(s string) bool {
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}

// Denial is the member authorization in the data of a JSON-RPC error (draft SEP-2643). It states
// that the caller lacks authorization, in addition to the HTTP challenge (RS-214).
type Denial struct {
	Reason string `json:"reason"` // REQUIRED: insufficient_authorization
	// OPTIONAL: the id of this refusal, here the reference for the operator
	ContextID string `json:"authorizationContextId,omitempty"`
	// OPTIONAL: whether another token would help. "replacement" means that the client can get one,
	// by requesting the scopes of the challenge or by a new sign-in.
	Disposition string `json:"credentialDisposition,omitempty"`
}

// Denial returns the structured denial for a refusal. It is nil for refusals with other reasons,
// and unless Config.StructuredDenials is set.
func (g *Guard) Denial(outcome Outcome, reference string) *Denial {
	if !g.c.StructuredDenials {
		return nil
	}
	d := &Denial{Reason: "insufficient_authorization", ContextID: reference}
	switch outcome {
	case OutcomeInsufficientScope, OutcomeInsufficientAuthentication:
		d.Disposition = "replacement"
	case OutcomeForbidden, OutcomeClearanceRequired, OutcomeClearanceRefused:
	default:
		return nil
	}
	return d
}

// Refer gets a reference from Decisions for an operation that an adapter refuses after the guard
// allowed its request. err is the error of Authorize or Recheck, and text the message for the
// client. It returns "" without Decisions.
func (g *Guard) Refer(ctx context.Context, op Operation, outcome Outcome, text string, err error) string {
	if g.c.Decisions == nil || errors.Is(err, ErrUnavailable) || errors.Is(err, ErrResourceURI) {
		return ""
	}
	who, _ := FromContext(ctx)
	p := &passage{began: g.c.Now(), at: g.own, identity: identity{principal: who}}
	if at := addressOf(who); at != nil {
		p.at = at
	}
	d := g.decision(p, op)
	d.HTTPMethod, d.Status, d.Outcome, d.Description = http.MethodPost, http.StatusForbidden, string(outcome), text
	var scope *ScopeError
	switch {
	case errors.As(err, &scope) && !scope.Denied:
		d.Error, d.Scope = oauth.InsufficientScope, oauth.Scopes(scope.Required).String()
	case errors.As(err, new(*AuthenticationError)):
		d.Error = oauth.InsufficientAuthentication
	case errors.Is(err, ErrInvalidToken), errors.Is(err, ErrNoCaller):
		d.Status, d.Error = http.StatusUnauthorized, oauth.InvalidToken
	}
	r := &http.Request{Method: http.MethodPost, Header: http.Header{}}
	if token := token.PresentedToken(who); token != "" { // the request is gone: the token alone identifies the caller
		d.Scheme = "Bearer"
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return g.named(r, d)
}

// named returns the reference from Decisions, or "" if it is not safe in a header.
func (g *Guard) named(r *http.Request, d oauth.Decision) string {
	reference := g.c.Decisions.Refused(r, d)
	if len(reference) > maxReference || !isAlphanumeric(reference) {
		return "" // it could contain anything
	}
	return reference
}
