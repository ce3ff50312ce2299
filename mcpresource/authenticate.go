package mcpresource

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mcp-authd/mcp-authd/mcpresource/internal/logged"
	"github.com/mcp-authd/mcp-authd/mcpresource/internal/token"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// callers is the step that verifies who calls.
type callers struct {
	challenges
	validator Validator
	issuers   []string
	skew      time.Duration
	now       func() time.Time
	bindings  *bindings
	load      *load
	policy    Policy
	proofs    bool // whether some scope requires an authentication
}

// identity contains the results of the step callers.
type identity struct {
	principal *Principal    // nil for a public method
	who       string        // cached principal.Person
	caller    caller        // attached to the principal; set if a credential was sent
	proof     token.Reading // cached authentication claims, if a rule needs them
	unknown   *refusal      // of a caller without a token, whose operation may be public
}

func (c *callers) check(w http.ResponseWriter, r *http.Request, p *passage) *refusal {
	p.unknown = c.authenticate(w, r, p)
	if p.unknown != nil && !c.mayBePublic(r, p.unknown) {
		return c.load.strangers(r, p, p.unknown)
	}
	return nil
}

// mayBePublic reports whether to read a request without a token: only a POST can be a public
// operation.
func (c *callers) mayBePublic(r *http.Request, refused *refusal) bool {
	rules, ok := c.policy.(*Rules)
	return refused.outcome == OutcomeUnauthenticated && r.Method == http.MethodPost &&
		(!ok || len(rules.Public) > 0 || rules.Refine != nil)
}

// authenticate verifies the caller (OAuth 2.1 §5.1).
func (c *callers) authenticate(w http.ResponseWriter, r *http.Request, p *passage) *refusal {
	sent, refused := c.credential(r)
	if refused != nil {
		return refused
	}
	p.caller.validator, p.caller.sent, p.caller.at = c.validator, sent, p.at
	principal, refused := c.validate(r.Context(), sent, p.at)
	if refused != nil {
		return refused
	}
	if refused := c.bindings.confirm(w, sent, p.at, principal.Thumbprint); refused != nil {
		return refused
	}
	own := *principal // the validator may share its Principal
	token.Attach(&own, &p.caller)
	if token.KeepProof(&own, nil); c.proofs {
		token.KeepProof(&own, &p.proof)
	}
	p.principal, p.who = &own, own.Person()
	return nil
}

// credential reads the Authorization header. It ignores tokens elsewhere (RS-25, RS-26).
func (c *callers) credential(r *http.Request) (Credential, *refusal) {
	values := r.Header["Authorization"]
	if _, guarded := FromContext(r.Context()); guarded && len(values) == 0 {
		return Credential{}, &refusal{
			outcome: OutcomeMisconfigured, status: http.StatusInternalServerError,
			text: "The server is not set up right.", err: errTwoGuards,
		}
	}
	if len(values) == 0 { // RS-14, without an error in the challenge: RS-18
		return Credential{}, &refusal{
			outcome: OutcomeUnauthenticated, status: http.StatusUnauthorized, text: "Authentication is required.",
			challenge: &oauth.BearerChallenge{Scope: c.first}, err: errNoHeader,
		}
	}
	scheme, sent, _ := strings.Cut(strings.TrimSpace(values[0]), " ")
	sent = strings.TrimSpace(sent)
	known := strings.EqualFold(scheme, "Bearer") || strings.EqualFold(scheme, "DPoP") // RS-24
	if len(values) > 1 || sent == "" || !known || isSeveral(sent) {
		return Credential{}, c.challenged(OutcomeMalformed, http.StatusBadRequest, // RS-22
			oauth.InvalidRequest,
			"The Authorization header is malformed.", malformed(values, scheme, sent))
	}
	return Credential{Scheme: scheme, Token: sent, Request: r}, nil
}

// validate returns the caller with a valid token for this address.
func (c *callers) validate(ctx context.Context, sent Credential, at *address) (*Principal, *refusal) {
	p, err := c.validator.Validate(ctx, sent)
	switch {
	case (err != nil || p == nil) && token.Outage(err):
		return nil, &refusal{
			outcome: OutcomeUnavailable, status: http.StatusServiceUnavailable,
			text: "The access token cannot be checked now.", retry: time.Second, err: err,
		}
	case err != nil:
		return nil, c.challenged(OutcomeInvalidToken, http.StatusUnauthorized, oauth.InvalidToken,
			"The access token is not valid.", err)
	}
	if err := c.checkClaims(p, at); err != nil {
		return nil, c.challenged(OutcomeInvalidToken, http.StatusUnauthorized, oauth.InvalidToken,
			"The access token is not valid for this server.", err)
	}
	return p, nil
}

// malformed describes the error in an Authorization header without quoting it: any part may be a
// secret.
func malformed(values []string, scheme, token string) error {
	switch {
	case len(values) > 1:
		return fmt.Errorf("there are %d Authorization headers, want one", len(values))
	case strings.EqualFold(scheme, "Basic"):
		return errors.New(`the Authorization header has the scheme Basic, want "Bearer TOKEN"`)
	case token == "":
		return errors.New(`the Authorization header is one word or empty, want "Bearer TOKEN"`)
	case isSeveral(token):
		return errors.New(`the Authorization header has more than two words, want "Bearer TOKEN"`)
	}
	return errors.New(`the Authorization header has another scheme, want "Bearer TOKEN"`)
}

// isSeveral reports whether a token is more than one word. Tokens are long, and IndexByte is fast.
func isSeveral(token string) bool {
	found := func(c byte) bool { return strings.IndexByte(token, c) >= 0 }
	return found(' ') || found('\t') || found(',')
}

var errNoHeader = errors.New("there is no Authorization header")

// errTwoGuards is the error for two nested guards. Otherwise every request would seem to lack a
// token.
var errTwoGuards = errors.New(
	"this guard is behind another one, which has removed the token from the request: remove one of them",
)

// checkClaims checks issuer, audience and expiry itself, whatever the validator checked. A token
// for another server gets 401, not 403 (OAuth 2.1 §5.3.2). So does a token for another address of
// this server: otherwise two users of one client could be confused.
func (c *callers) checkClaims(p *Principal, at *address) error {
	now := c.now()
	switch {
	case !slices.Contains(c.issuers, p.Issuer):
		return token.Invalid(
			logged.Unexpected("issued by another server: iss is", p.Issuer, c.issuers...))
	case !slices.ContainsFunc(p.Audience, at.isAudience): // RS-39, RS-49, RS-210, SP-05
		return token.Invalid(
			logged.Unexpected("for another resource: aud is", strings.Join(p.Audience, " "), at.resource))
	case p.ExpiresAt.IsZero() || !now.Before(p.ExpiresAt.Add(c.skew)):
		return token.Invalid(token.Expired(p.ExpiresAt, now))
	case p.Subject == "" && p.ClientID == "":
		return token.Invalid("names neither a person nor a client: all such callers would be one")
	case strings.IndexByte(p.Subject, 0) >= 0 || strings.IndexByte(p.ClientID, 0) >= 0:
		return token.Invalid("a name that could be two callers, see Key")
	}
	return nil
}

// same returns nil if the token still belongs to the same caller. Scopes and times may differ,
// because an introspecting server may have changed them.
func (c *callers) same(p, now *Principal, at *address) error {
	switch {
	case now == nil:
		return ErrUnavailable
	case now.Key() != p.Key() || now.Thumbprint != p.Thumbprint:
		return token.Invalid("belongs to another caller now")
	}
	return c.checkClaims(now, at)
}

// Verify checks a credential from outside a request, such as the token in the environment of a
// stdio server. It applies the same rules: the validator, then issuer, audience (the resource, not
// an alias) and times. It rejects tokens bound to a key, because the caller cannot present a proof.
// The error wraps ErrInvalidToken or ErrUnavailable.
func (g *Guard) Verify(ctx context.Context, c Credential) (*Principal, error) {
	p, err := g.callers.validator.Validate(ctx, c)
	switch {
	case err != nil:
		return nil, logged.Redact(token.Judged(err), c.Token)
	case p == nil:
		return nil, ErrUnavailable
	case p.Thumbprint != "":
		return nil, token.Invalid("bound to a key")
	}
	if err := g.callers.checkClaims(p, g.own); err != nil {
		return nil, err
	}
	own := *p // the validator may share its Principal
	token.Attach(&own, &caller{validator: g.callers.validator, sent: c, at: g.own})
	return &own, nil
}

// caller is the guard's record of the request of a Principal.
type caller struct {
	validator Validator
	sent      Credential
	at        *address    // where the request arrived
	openedBy  string      // see Event
	traced    *traced     // of the request's calls; nil without a Tracer
	reported  atomic.Bool // whether the handler reports the request's calls
	cleared   *cleared    // the approved call, or nil
}

// again validates the token again.
func (c *caller) again(ctx context.Context) (*Principal, error) {
	p, err := c.validator.Validate(ctx, c.sent)
	return p, logged.Redact(err, c.sent.Token)
}

// Within returns ctx with the call of the request in it.
func (c *caller) Within(ctx context.Context) context.Context { return c.traced.within(ctx) }

// callerOf returns the record of the request of p, or nil outside a guard.
func callerOf(p *Principal) *caller {
	c, _ := token.AttachmentOf(p).(*caller)
	return c
}

// addressOf returns where the request of p arrived, or nil outside a guard.
func addressOf(p *Principal) *address {
	if c := callerOf(p); c != nil {
		return c.at
	}
	return nil
}

// clearedOf returns the approved call of the request of p, or nil.
func clearedOf(p *Principal) *cleared {
	if c := callerOf(p); c != nil {
		return c.cleared
	}
	return nil
}
