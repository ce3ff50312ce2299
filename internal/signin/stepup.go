package signin

import (
	"net/http"
	"slices"
	"strings"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// NeedMore is a refusal that another sign-in can resolve: a 403 that names the required scopes (MCP
// "Step-Up Authorization Flow"), or a 401 that names the required authentication of the user (RFC
// 9470).
type NeedMore struct {
	Scopes oauth.Scopes
	Proof  Proof
	Text   string // message of the MCP server, or ""
}

// Error implements error.
func (e *NeedMore) Error() string {
	if e.Proof.Demands() {
		return "a stronger or more recent sign-in is needed: " + e.Proof.String()
	}
	return "more scope is needed: " + e.Scopes.String()
}

// Needed returns what the challenge of a refusal demands of another sign-in. ok is false if no
// sign-in resolves the refusal.
func Needed(ch oauth.Challenge) (more NeedMore, ok bool) {
	if !strings.EqualFold(ch.Scheme, "Bearer") && !strings.EqualFold(ch.Scheme, "DPoP") {
		return more, false
	}
	more = NeedMore{Scopes: oauth.ParseScopes(ch.Params["scope"]), Proof: proofOf(ch.Params)}
	return more, more.Proof.Demands() || ch.Params["error"] == string(oauth.InsufficientScope)
}

// maxStepUps limits how often a call makes the user sign in again (CL-21).
const maxStepUps = 5

// StepUps records the step-ups that a call has needed so far.
type StepUps struct {
	Count  int
	asked  oauth.Scopes
	proofs []Proof
}

// MustWait reports whether only an approval is missing, and no sign-in would show its page. Either
// sign-in has no page, or it has shown it and another user must decide.
func (so *StepUps) MustWait(more NeedMore, granted oauth.Scopes, pages bool) bool {
	scopes, clearance := more.Scopes.WithoutClearances()
	return clearance != "" && !more.Proof.Demands() && granted.Has(scopes...) &&
		(!pages || so.asked.Has(oauth.ScopeClearance+clearance))
}

// Ask returns the scopes to request in addition (CL-20). pages reports whether the user sees the
// pages of the authorization server, where a call is approved through its scope. ok is false if the
// same request was made in vain, or after too many step-ups.
func (so *StepUps) Ask(more NeedMore, pages bool) (ask oauth.Scopes, ok bool) {
	ask, clearance := more.Scopes.WithoutClearances()
	if clearance != "" && pages { // elsewhere it cannot be requested as a scope
		ask = more.Scopes
	}
	again := so.asked.Has(ask...)
	if more.Proof.Demands() {
		again = slices.Contains(so.proofs, more.Proof)
	}
	if again || so.Count == maxStepUps {
		return ask, false
	}
	so.Count, so.asked, so.proofs = so.Count+1, so.asked.Union(ask), append(so.proofs, more.Proof)
	return ask, true
}

// Exhausted reports whether there were too many step-ups.
func (so *StepUps) Exhausted() bool { return so.Count == maxStepUps }

// Present returns a transport that adds a token to requests.
func (c *Client) Present(token oauth.TokenResponse) http.RoundTripper {
	return &presenter{authorization: token.TokenType + " " + token.AccessToken, next: c.calls}
}

// presenter adds a token to requests for one server.
type presenter struct {
	authorization string
	next          http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (p *presenter) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", p.authorization) // CL-25
	return p.next.RoundTrip(r)
}
