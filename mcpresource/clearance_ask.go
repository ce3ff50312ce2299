package mcpresource

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"
	"unicode"

	"github.com/mcp-authd/mcp-authd/internal/mcp"
	"github.com/mcp-authd/mcp-authd/mcpresource/internal/limits"
	"github.com/mcp-authd/mcp-authd/mcpresource/internal/logged"
	"github.com/mcp-authd/mcp-authd/mcpresource/internal/message"
	"github.com/mcp-authd/mcp-authd/mcpresource/internal/rules"
	"github.com/mcp-authd/mcp-authd/mcpresource/internal/token"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// clearancesOf returns the Clearances that a validator implements, or nil.
func clearancesOf(v Validator) Clearances {
	if i := token.IntrospectorOf(v); i != nil {
		c, _ := i.(Clearances)
		return c
	}
	c, _ := v.(Clearances)
	return c
}

// checkClearances returns an error if rules require approvals but no Clearances is configured.
func checkClearances(c *Config, r *Rules) error {
	if len(r.Clearances) > 0 && c.Clearances == nil {
		return errors.New("mcpresource: Rules.Clearances need Config.Clearances, to ask people by: set NewClearances, " +
			"or a Validator that is Local with an authserver.Server")
	}
	return nil
}

// A call of 2026-07-28 that returns with the link accepted waits clearanceWait for the approval,
// which the client cannot observe, and checks every clearancePoll. maxWaiting is the maximum number
// of such calls of one user.
const (
	clearanceWait = 45 * time.Second
	clearancePoll = 2 * time.Second
	maxWaiting    = 8
)

// clearanceQuestion is the key of the guard's question in the client's answers. clearanceState is
// the prefix of a requestState that stores the parameters of a waiting call.
const (
	clearanceQuestion = "mcp-authd-clearance"
	clearanceState    = "mcp-authd-clearance:"
)

// maxClearanceID is the maximum length of an id in challenges and logs.
const maxClearanceID = 128

// demand is a call that needs approval.
type demand struct {
	op    Operation
	need  Clearance
	alone bool // the only message, and a request with an id
}

// and returns the demand of a message with a further call. d is nil for the first one.
func (d *demand) and(op Operation, need Clearance, id json.RawMessage) *demand {
	if d != nil { // the second one of a batch
		d.alone = false
		return d
	}
	if string(op.Arguments) == "null" {
		op.Arguments = nil
	}
	alone := len(id) > 0 && string(id) != "null" // some servers treat null as a notification
	return &demand{op: op, need: need, alone: alone}
}

// approvals is the step that gets the approval that a call needs.
type approvals struct {
	challenges
	by       Clearances // may be nil
	sessions *sessions
	waiting  limits.Tally  // requests that wait for an approval
	wait     time.Duration // of one
	poll     time.Duration
}

// check gets the approval that a call needs. It is the last check: only calls that are otherwise
// allowed are shown for approval, and only a call that proceeds uses an approval up.
func (a *approvals) check(w http.ResponseWriter, r *http.Request, p *passage) *refusal {
	d := p.demand
	if d == nil {
		return nil
	}
	id, refused := a.approval(w, r, p)
	if p.clearance = id; refused == nil {
		p.caller.cleared = &cleared{id: id, tool: d.op.Name, digest: Digest(d.op.Arguments)}
	}
	return refused
}

// approval gets the approval of a call. It returns its id, also with a refusal once a user was asked.
func (a *approvals) approval(w http.ResponseWriter, r *http.Request, p *passage) (id string, refused *refusal) {
	d := p.demand
	switch {
	case d.op.Method != "tools/call":
		return "", p.forbidden(&ClearanceError{d.need})
	case !d.alone: // one response cannot refuse two calls
		return "", p.uncleared("A call that a person has to approve must be a request of its own, with an id, and not part of a batch.")
	case a.by == nil:
		return "", p.unchecked(errors.New("the policy demands clearance, and there is no Config.Clearances"))
	}
	said, refused := p.takeAnswer(r)
	if refused != nil {
		return "", refused
	}
	if said == "decline" || said == "cancel" {
		return "", p.uncleared("This call was not approved: the link was declined.")
	}
	c, err := a.askClearance(r.Context(), p)
	waits := func() bool { return err == nil && !c.Cleared && !c.Refused }
	waited := said == "accept" && waits()
	if waited {
		liftBodyDeadline(w) // otherwise the deadline would end the request
		c, err = a.awaitClearance(r.Context(), p, c)
	}
	switch {
	case err != nil:
		return c.ID, a.cannotAsk(p, err)
	case c.Refused:
		return c.ID, p.uncleared("This call was denied by the person who was asked.")
	case !c.Cleared:
		return c.ID, a.sendToPage(r, p, c, waited)
	}
	return c.ID, nil
}

func (a *approvals) askClearance(ctx context.Context, p *passage) (oauth.Clearance, error) {
	d := p.demand
	c, err := a.by.Clear(NewContext(ctx, p.principal), p.caller.sent.Token, oauth.ClearanceDemand{
		Resource: p.at.resource, Tool: d.op.Name, Arguments: d.op.Arguments,
		By: d.need.By, Approvers: d.need.Approvers,
		ACR: d.need.Authentication.ACR, MaxAge: d.need.Authentication.MaxAge,
	})
	switch {
	case err != nil:
		return oauth.Clearance{}, err
	case len(c.ID) > maxClearanceID || !oauth.ValidScope(oauth.ScopeClearance+c.ID),
		!c.Cleared && !c.Refused && c.URL == "":
		return oauth.Clearance{}, errors.New("the answer about a clearance is malformed")
	}
	return c, nil
}

// awaitClearance repeats the request until it is decided, or until the client should get a
// response.
func (a *approvals) awaitClearance(ctx context.Context, p *passage, c oauth.Clearance) (oauth.Clearance, error) {
	defer a.waiting.Add(p.person(), -1)
	if a.waiting.Add(p.person(), 1) > maxWaiting {
		return c, nil
	}
	ctx, cancel := context.WithTimeout(ctx, a.wait)
	defer cancel()
	tick := time.NewTicker(a.poll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return c, nil
		case <-tick.C:
		}
		// Not cancelled: the server might use up an approval without this call learning of it.
		next, err := a.askClearance(context.WithoutCancel(ctx), p)
		if err != nil || next.Cleared || next.Refused {
			return next, err
		}
		c = next
	}
}

// takeAnswer removes the client's answer to the guard's question from a request of 2026-07-28. The
// request then continues as if the question had not been asked.
func (p *passage) takeAnswer(r *http.Request) (action string, refused *refusal) {
	if !mcp.IsStateless(first(r.Header, mcp.HeaderVersion)) {
		return "", nil
	}
	action, body, err := message.TakeAnswer(p.body, clearanceQuestion, clearanceState)
	if err != nil {
		return "", &refusal{
			outcome: OutcomeAmbiguous, status: http.StatusBadRequest, code: mcp.CodeInvalidParams, id: p.envelope.ID,
			text: "The answers in the request are malformed or ambiguous.", err: rules.Ambiguous(err),
		}
	}
	p.body = body
	return action, nil
}

// sendToPage directs the client's user to the approval page: with a question if the client can show
// links, else with a challenge.
func (a *approvals) sendToPage(r *http.Request, p *passage, c oauth.Clearance, waited bool) *refusal {
	refused := &refusal{outcome: OutcomeClearanceRequired, status: http.StatusOK, id: p.envelope.ID}
	version := first(r.Header, mcp.HeaderVersion)
	switch {
	case waited: // the user has the page already, and another question would open it again
		refused.text = "This call has not been approved yet. Open " + c.URL + " to do so, then call again."
	case mcp.IsStateless(version) && message.ShowsLinks(message.Member(p.meta(), mcp.MetaCapabilities)):
		question := map[string]any{"mode": "url", "url": c.URL, "message": p.demand.question()}
		request := map[string]any{"method": "elicitation/create", "params": question}
		refused.result = map[string]any{ // RS-178, RS-179; such questions have no id (RS-204)
			"resultType": "input_required", "inputRequests": map[string]any{clearanceQuestion: request},
		}
		if state := message.KeepAnswers(p.body, clearanceState); state != "" {
			refused.result["requestState"] = state
		}
	case version == mcp.Rev20251125 && a.sessions.showsLinks(r.Context(), p): // RS-125
		refused.code, refused.text = mcp.CodeURLElicitationNeeded, p.demand.question()
		refused.data = map[string]any{"elicitations": []any{map[string]any{
			"mode": "url", "elicitationId": c.ID, "url": c.URL, "message": p.demand.question(),
		}}}
	default:
		return a.challengeClearance(r, p, c)
	}
	return refused
}

func (p *passage) meta() json.RawMessage { return p.envelope.Messages[0].Meta }

// challengeClearance directs the user to the approval page with a step-up challenge. The text
// contains the link for clients that do not follow it.
func (a *approvals) challengeClearance(r *http.Request, p *passage, c oauth.Clearance) *refusal {
	refused := a.challenged(OutcomeClearanceRequired, http.StatusForbidden, oauth.InsufficientScope,
		"A person has to approve this call.", &ClearanceError{p.demand.need})
	refused.text = "A person has to approve this call. Open " + c.URL + " to do so, then call again."
	own := oauth.Scopes{oauth.ScopeClearance + c.ID}
	refused.challenge.Scope, refused.id = a.stepUp(r, p.need, p.principal.Scopes).Union(own), p.envelope.ID
	return refused
}

// question returns the text that the client shows with the link. It does not name the user
// (RS-201).
func (d *demand) question() string {
	tool := "the tool " + shown(d.op.Name)
	if d.need.By == oauth.ClearanceByOther {
		return "Another person has to approve this call of " + tool + ". Please open the page to see who, and what is asked."
	}
	return "You have to approve this call of " + tool + ". Please look at it in your browser."
}

// shown returns a tool's name for display. For a rule with a pattern, the client chose that name.
func shown(name string) string {
	const longest = 64
	if len(name) > longest || slices.ContainsFunc([]rune(name), func(c rune) bool { return !unicode.IsPrint(c) }) {
		return strconv.QuoteToASCII(logged.Cut(name, longest))
	}
	return name
}

// uncleared refuses a call that cannot be approved any more.
func (p *passage) uncleared(text string) *refusal {
	return &refusal{
		outcome: OutcomeClearanceRefused, status: http.StatusForbidden, id: p.envelope.ID, text: text,
		err: &ClearanceError{p.demand.need},
	}
}

// cannotAsk returns the refusal for an error of Clear.
func (a *approvals) cannotAsk(p *passage, err error) *refusal {
	var said *oauth.Error
	if !errors.As(err, &said) || errors.Is(err, ErrUnavailable) {
		return p.unchecked(err)
	}
	switch said.Code {
	case oauth.ServerError, oauth.TemporarilyUnavailable:
		return p.unchecked(err)
	case oauth.SlowDown:
		return p.limited("Too many calls wait for a person.", max(said.RetryAfter, time.Second))
	case oauth.InvalidToken, oauth.InvalidGrant: // it ended after it was checked
		refused := a.challenged(OutcomeInvalidToken, http.StatusUnauthorized, oauth.InvalidToken,
			"The access token is not valid.", err)
		refused.id = p.envelope.ID
		return refused
	case oauth.InvalidRequest:
		refused := p.uncleared("A person has to approve this call, and cannot be asked. " +
			oauth.SafeDescription(said.Description))
		refused.err = err
		return refused
	}
	refused := p.uncleared("A person has to approve this call, and no person can be asked.")
	refused.err = err
	return refused
}

// ClearanceError means that an operation needs an approval that this request does not have. For
// HTTP requests the guard requests approvals; over stdio that is not possible.
type ClearanceError struct{ Required Clearance }

// Error implements error.
func (e *ClearanceError) Error() string {
	return "mcpresource: the operation needs clearance by a person: " + e.Required.By
}

// cleared is the call that was approved for a request.
type cleared struct{ id, tool, digest string }

// isFor reports whether op is the approved call. Adapters may decode it, so differences in white
// space are ignored.
func (c *cleared) isFor(op Operation) bool {
	return c != nil && op.Method == "tools/call" && c.tool == op.Name && c.digest == Digest(op.Arguments)
}

type begunKey struct{}

// Begun returns a context for work that follows an allowed call, such as a client's questions about
// its task. With it, Authorize and Recheck require no approval, because the call already had it.
func Begun(ctx context.Context) context.Context { return context.WithValue(ctx, begunKey{}, true) }

// clearedFor returns a *ClearanceError if op needs an approval that the request of p does not have.
func clearedFor(ctx context.Context, p *Principal, op Operation, need Clearance) error {
	if !rules.DemandsApproval(need) || clearedOf(p).isFor(op) || ctx.Value(begunKey{}) != nil {
		return nil
	}
	return &ClearanceError{need}
}
