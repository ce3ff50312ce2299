package mcpresource

import (
	"context"
	"errors"
	"net/http"

	"github.com/mcp-authd/mcp-authd/mcpresource/internal/token"
	"github.com/mcp-authd/mcp-authd/oauth"
)

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
	p := &passage{began: g.c.Now(), at: g.own, principal: who}
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
