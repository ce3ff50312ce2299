package mcpresource

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/mcp-authd/mcp-authd/mcpresource/internal/message"
	"github.com/mcp-authd/mcp-authd/mcpresource/internal/rules"
	"github.com/mcp-authd/mcp-authd/mcpresource/internal/token"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// ErrForbidden means that Config.Check refused an operation that the scopes allow, or that only the
// application itself may call it and not its sub-agents. The rest of the error is only for the log.
var ErrForbidden = errors.New("mcpresource: operation is not permitted")

// permissions is the step that compares the scopes and the authentication of callers with a policy.
type permissions struct {
	challenges
	policy     Policy       // Rules in a prepared form
	base       oauth.Scopes // the scopes that Rules require for every operation
	hierarchic func(oauth.Scopes) oauth.Scopes
	now        func() time.Time
	load       *load
}

// demanded lists the requirements that the operations of a request have together.
type demanded struct {
	need           oauth.Scopes
	authentication Authentication
	demand         *demand // nil if no call needs approval
}

func (s *permissions) check(_ http.ResponseWriter, r *http.Request, p *passage) *refusal {
	var refused *refusal
	if p.demanded, refused = s.authorize(r, p); refused != nil {
		return s.load.strangers(r, p, refused)
	}
	return nil
}

// authorize checks every operation of the message against the policy. One challenge names all their
// scopes, so that one step-up is enough.
func (s *permissions) authorize(r *http.Request, p *passage) (all demanded, refused *refusal) {
	all.need = s.base
	var lacking *ScopeError
	messages := p.envelope.Messages
	if len(messages) == 0 {
		messages = []message.Message{{}} // a GET or DELETE needs what every operation needs
	}
	for _, m := range messages {
		want := s.require(p.principal, rules.OperationOf(m)) // only the body counts, never headers: RS-158
		switch {
		case want.Deny && p.unknown == nil:
			lacking = deniedBy(want)
			continue
		case rules.IsOpen(want):
			continue
		case p.unknown != nil:
			return all, p.unknown
		}
		if !all.need.Has(want.Scopes...) {
			all.need = all.need.Union(want.Scopes)
		}
		if err := direct(p.principal, want); err != nil {
			return all, p.forbidden(err) // no scope would help
		}
		if scope := s.sufficient(p.principal, want); scope != nil && lacking == nil {
			lacking = scope
		}
		all.authentication = rules.BothProofs(all.authentication, want.Authentication)
		if rules.DemandsApproval(want.Clearance) {
			all.demand = all.demand.and(rules.OperationOf(m), want.Clearance, p.envelope.ID)
		}
	}
	if lacking != nil {
		return all, s.refuseScope(r, p, all.need, lacking)
	}
	return all, s.insufficient(r, p, all)
}

// refuseScope refuses a token that lacks scopes, or an operation that is denied.
func (s *permissions) refuseScope(r *http.Request, p *passage, need oauth.Scopes, lacking *ScopeError) *refusal {
	if lacking.Denied {
		return &refusal{
			outcome: OutcomeInsufficientScope, status: http.StatusForbidden, id: p.envelope.ID,
			text: rules.DenialText(lacking), err: lacking,
		}
	}
	refused := s.challenged(OutcomeInsufficientScope, http.StatusForbidden, oauth.InsufficientScope,
		"This operation needs more scope.", lacking)
	refused.challenge.Scope, refused.id = s.stepUp(r, need, p.principal.Scopes), p.envelope.ID
	return refused
}

// objects is the step that calls Config.Check for each operation of the message.
type objects struct {
	permits func(ctx context.Context, p *Principal, op Operation) error // may be nil
}

func (o objects) check(_ http.ResponseWriter, r *http.Request, p *passage) *refusal {
	ctx := r.Context()
	if o.permits == nil || p.principal == nil {
		return nil
	}
	for _, m := range p.envelope.Messages {
		err := o.permits(ctx, p.principal, rules.OperationOf(m))
		switch {
		case errors.Is(err, ErrUnavailable):
			return p.unchecked(err)
		case err != nil:
			return p.forbidden(err)
		}
	}
	return nil
}

// forbidden refuses an operation that no scope would allow.
func (p *passage) forbidden(err error) *refusal {
	return &refusal{
		outcome: OutcomeForbidden, status: http.StatusForbidden, id: p.envelope.ID,
		text: "This operation is not permitted.", err: err,
	}
}

// Authorize checks whether the caller in ctx may do op, for adapters that see the decoded call. It
// returns nil if so. Otherwise the error is one of:
//
//   - a *ScopeError, an *AuthenticationError or ErrNoCaller
//   - an error that wraps ErrForbidden or ErrUnavailable, from Check or from a rule that only the
//     application itself may call a tool
//   - ErrResourceURI for a resource URI that is never allowed
//   - a *ClearanceError for a call that needs approval and is not the call approved for this
//     request: only the guard requests approvals
func (g *Guard) Authorize(ctx context.Context, op Operation) error {
	p, need, err := g.permissions.covered(ctx, op)
	if err != nil || p == nil {
		return err
	}
	if g.c.Check != nil {
		err = g.c.Check(ctx, p, op)
	}
	switch {
	case err == nil:
		return clearedFor(ctx, p, op, need)
	case errors.Is(err, ErrUnavailable):
		return err
	}
	return fmt.Errorf("%w: %w", ErrForbidden, err)
}

// Covers reports whether the caller in ctx has the scopes for op, whatever its arguments and Check.
// Lists should show such entries.
func (g *Guard) Covers(ctx context.Context, op Operation) bool {
	if rules.CheckURI(op) != nil {
		return false
	}
	need := g.permissions.policy.Require(op)
	if rules.IsOpen(need) {
		return true
	}
	p, ok := FromContext(ctx)
	return ok && direct(p, need) == nil && g.permissions.holds(p, need) &&
		g.permissions.proven(p, need.Authentication) == nil
}

// CoversWithScopes is like Covers, for a caller with all scopes and a fresh sign-in. Lists may show
// such entries so that clients can request their scopes. It is false for denied operations, for a
// sub-agent where only the application itself may call, and for resource URIs that are never
// allowed.
func (g *Guard) CoversWithScopes(ctx context.Context, op Operation) bool {
	if rules.CheckURI(op) != nil {
		return false
	}
	need := g.permissions.policy.Require(op)
	if rules.IsOpen(need) {
		return true
	}
	p, ok := FromContext(ctx)
	return ok && !need.Deny && direct(p, need) == nil
}

func (s *permissions) need(ctx context.Context, op Operation) (Requirement, error) {
	if err := rules.CheckURI(op); err != nil {
		return Requirement{}, err
	}
	p, _ := FromContext(ctx)
	return s.require(p, op), nil
}

// covered returns the caller and the required approval of an operation. The caller is nil if the
// operation requires no token.
func (s *permissions) covered(ctx context.Context, op Operation) (*Principal, Clearance, error) {
	need, err := s.need(ctx, op)
	if err != nil || rules.IsOpen(need) {
		return nil, Clearance{}, err
	}
	p, ok := FromContext(ctx)
	if !ok {
		return nil, Clearance{}, ErrNoCaller
	}
	if err := direct(p, need); err != nil {
		return nil, Clearance{}, err
	}
	if scope := s.sufficient(p, need); scope != nil {
		return nil, Clearance{}, scope
	}
	if err := s.proven(p, need.Authentication); err != nil {
		return nil, Clearance{}, err
	}
	return p, need.Clearance, nil
}

// Require reports whether the caller in ctx has scopes, including implied ones. It is for decisions
// that depend on facts only the handler knows. It returns nil if so, otherwise a *ScopeError or
// ErrNoCaller.
func (g *Guard) Require(ctx context.Context, scopes ...string) error {
	p, ok := FromContext(ctx)
	if !ok {
		return ErrNoCaller
	}
	if lacking := g.permissions.sufficient(p, Requirement{Scopes: oauth.Scopes(scopes)}); lacking != nil {
		return lacking
	}
	return nil
}

// Recheck is Authorize for work that outlives its request, such as a task. It also validates the
// token again: the caller must still be the same, and the token's current scopes apply. Besides
// Authorize's errors it returns errors that wrap ErrInvalidToken or ErrUnavailable.
func (g *Guard) Recheck(ctx context.Context, op Operation) error {
	p, ok := FromContext(ctx)
	if !ok {
		return ErrNoCaller
	}
	at, from := g.own, callerOf(p)
	if from != nil {
		at = from.at
	}
	if err := g.callers.checkClaims(p, at); err != nil {
		return err
	}
	if from != nil {
		now, err := from.again(ctx)
		if err == nil {
			err = g.callers.same(p, now, at)
		}
		if err != nil {
			return token.Judged(err)
		}
		ctx = NewContext(ctx, token.Renewed(p, now))
	}
	return g.Authorize(ctx, op)
}

// sufficient compares the required scopes with the caller's, including implied ones (RS-32, RS-43).
func (s *permissions) sufficient(p *Principal, need Requirement) *ScopeError {
	if need.Deny {
		return deniedBy(need)
	}
	if s.holds(p, need) {
		return nil
	}
	held := s.hierarchic(p.Scopes)
	return &ScopeError{Required: slices.Clone(need.Scopes), Missing: oauth.Scopes(need.Scopes).Without(held)}
}

func deniedBy(need Requirement) *ScopeError { return &ScopeError{Denied: true, Reason: need.Reason} }

func (s *permissions) holds(p *Principal, need Requirement) bool {
	return !need.Deny && (p.Scopes.Has(need.Scopes...) || s.hierarchic(p.Scopes).Has(need.Scopes...))
}

// errHelper is the cause when a sub-agent is refused.
var errHelper = errors.New("only the application itself may, and no helper of it")

// direct returns an error that wraps ErrForbidden if need allows only the application itself, and
// an actor acts for it.
func direct(p *Principal, need Requirement) error {
	if !need.Direct {
		return nil
	}
	chain, err := token.Acting(p)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrForbidden, err)
	case len(chain) > 0:
		return fmt.Errorf("%w: %w", ErrForbidden, errHelper)
	}
	return nil
}

// proven returns an *AuthenticationError unless the token of p satisfies need.
func (s *permissions) proven(p *Principal, need Authentication) error {
	if !rules.DemandsProof(need) || proves(p, need, s.now()) {
		return nil
	}
	return &AuthenticationError{Required: need}
}

// proves reports whether the claims of a token satisfy need (RFC 9068 §2.2.1, RFC 9470 §6). An
// auth_time in the future is accepted, because the server's clock may be ahead.
func proves(p *Principal, need Authentication, now time.Time) bool {
	says, ok := token.ProofOf(p)
	if !ok {
		return false
	}
	recent := need.MaxAge == 0 || says.AuthTime > 0 && now.Sub(time.Unix(says.AuthTime, 0)) <= need.MaxAge
	return recent && (len(need.ACR) == 0 || says.ACR != rules.NoACR && slices.Contains(need.ACR, says.ACR))
}

// insufficient refuses a token whose user must authenticate again or with more factors (RFC 9470
// §3). It returns nil if the token satisfies need.
func (s *permissions) insufficient(r *http.Request, p *passage, all demanded) *refusal {
	need := all.authentication
	err := s.proven(p.principal, need)
	switch {
	case err == nil:
		return nil
	case slices.Contains(need.ACR, rules.NoACR): // no sign-in would help
		return &refusal{
			outcome: OutcomeInsufficientAuthentication, status: http.StatusForbidden, id: p.envelope.ID,
			text: "This operation is not permitted.", err: err,
		}
	}
	refused := s.challenged(OutcomeInsufficientAuthentication, http.StatusUnauthorized,
		oauth.InsufficientAuthentication, "This operation needs a stronger or more recent sign-in.", err)
	refused.challenge.ACRValues, refused.challenge.MaxAge = need.ACR, need.MaxAge
	refused.challenge.Scope, refused.id = s.stepUp(r, all.need, p.principal.Scopes), p.envelope.ID
	return refused
}
