package mcpresource

import (
	"context"
	"errors"
	"net/http"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// Denial is the member authorization of the data of a JSON-RPC error (SEP-2643, a draft): that an operation is
// refused for what its caller may do, beside the HTTP challenge (RS-214).
type Denial struct {
	Reason string `json:"reason"` // REQUIRED: insufficient_authorization
	// OPTIONAL: what names this refusal; here the reference by which the operator finds it
	ContextID string `json:"authorizationContextId,omitempty"`
	// OPTIONAL: whether another token would help. A replacement is what a client gets that asks for the scopes
	// of the challenge, or has its person sign in again.
	Disposition string `json:"credentialDisposition,omitempty"`
}

// Denial returns what Config.StructuredDenials says of a refusal, nil for one that is about something else, or
// without that.
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

// Refer has Decisions name an operation that an adapter refuses, which sees the decoded call, after the guard
// has let its request through: with an error of Authorize or Recheck, and a text for the client. It returns the
// reference for the answer, "" without Decisions.
func (g *Guard) Refer(ctx context.Context, op Operation, outcome Outcome, text string, err error) string {
	if g.c.Decisions == nil || errors.Is(err, ErrUnavailable) || errors.Is(err, ErrResourceURI) {
		return ""
	}
	who, _ := FromContext(ctx)
	p := &passage{began: g.c.Now(), at: g.own, principal: who}
	if who != nil && who.at != nil {
		p.at = who.at
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
	if who != nil && who.presented != nil { // who asks is known by the token alone: the request is behind us
		d.Scheme = "Bearer"
		r.Header.Set("Authorization", "Bearer "+who.presented.token)
	}
	return g.named(r, d)
}

// named is the reference that Decisions give, if it can stand in a header.
func (g *Guard) named(r *http.Request, d oauth.Decision) string {
	reference := g.c.Decisions.Refused(r, d)
	if len(reference) > maxReference || !isAlphanumeric(reference) {
		return "" // in a header it could be anything
	}
	return reference
}
