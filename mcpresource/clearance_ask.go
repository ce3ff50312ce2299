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
	"github.com/mcp-authd/mcp-authd/mcpresource/internal/message"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Clearances asks the authorization server for the permission of a person. authserver.Server is one, and NewClearances
// has one for a server in another process.
type Clearances interface {
	// Clear asks for the caller of a token, who is in ctx as well (FromContext). An answer that is Cleared has been
	// used up by it: the same demand is asked for again after that. One that is still waited for stays the same.
	//
	// An *oauth.Error says why nobody is asked: invalid_request, that the call cannot be shown, with a description
	// for the client; invalid_grant, that the token is not active any more; slow_down, that too many calls wait;
	// others, that no permission could help. Any other error, and server_error and temporarily_unavailable, mean that
	// this cannot be decided now.
	Clear(ctx context.Context, token string, d oauth.ClearanceDemand) (oauth.Clearance, error)
}

// clearancesOf is a validator that is a Clearances, too.
func clearancesOf(v Validator) Clearances {
	if l, ok := v.(local); ok {
		c, _ := l.Introspector.(Clearances)
		return c
	}
	c, _ := v.(Clearances)
	return c
}

// checkClearances refuses rules that nothing could meet.
func (g *Guard) checkClearances(r *Rules) error {
	if len(r.Clearances) > 0 && g.c.Clearances == nil {
		return errors.New("mcpresource: Rules.Clearances need Config.Clearances, to ask people by: set NewClearances, " +
			"or a Validator that is Local with an authserver.Server")
	}
	return nil
}

// How long, and how often it looks, a call of 2026-07-28 that comes back with the link accepted waits for the person
// in the browser, of which the client learns nothing; and how many calls of one person wait so at once.
const (
	clearanceWait = 45 * time.Second
	clearancePoll = 2 * time.Second
	maxWaiting    = 8
)

// clearanceQuestion names our question in the answers of the client, and clearanceState begins a requestState in which
// we keep what a call brought that had to wait.
const (
	clearanceQuestion = "mcp-authd-clearance"
	clearanceState    = "mcp-authd-clearance:"
)

// maxClearanceID bounds what is put into challenges and logs.
const maxClearanceID = 128

// demand is a call that needs the permission of a person.
type demand struct {
	op    Operation
	need  Clearance
	alone bool // it is the only message, and can be answered
}

// needs notes that a call needs the permission of a person.
func (p *passage) needs(op Operation, need Clearance) {
	if p.demand != nil { // of two, which a batch has
		p.demand.alone = false
		return
	}
	if string(op.Arguments) == "null" {
		op.Arguments = nil
	}
	id := string(p.envelope.ID)
	p.demand = &demand{op: op, need: need, alone: id != "" && id != "null"} // of null some servers make a notification
}

// clear asks for the permission of a person that a call needs. It comes last: a person is asked only about
// calls that are allowed otherwise, and only a call that goes on uses a permission up.
func (g *Guard) clear(w http.ResponseWriter, r *http.Request, p *passage) *refusal {
	d := p.demand
	switch {
	case d == nil:
		return nil
	case d.op.Method != "tools/call":
		return p.forbidden(&ClearanceError{d.need})
	case !d.alone: // one answer says one thing
		return p.uncleared("A call that a person has to approve must be a request of its own, with an id, and not part of a batch.")
	case g.c.Clearances == nil:
		return p.unchecked(errors.New("the policy demands clearance, and there is no Config.Clearances"))
	}
	said, refused := p.takeAnswer(r)
	if refused != nil {
		return refused
	}
	if said == "decline" || said == "cancel" {
		return p.uncleared("This call was not approved: the link was declined.")
	}
	c, err := g.askClearance(r.Context(), p)
	waits := func() bool { return err == nil && !c.Cleared && !c.Refused }
	waited := said == "accept" && waits()
	if waited {
		liftBodyDeadline(w) // it would end the request
		c, err = g.awaitClearance(r.Context(), p, c)
	}
	p.clearance = c.ID
	switch {
	case err != nil:
		return g.cannotAsk(p, err)
	case c.Refused:
		return p.uncleared("This call was denied by the person who was asked.")
	case !c.Cleared:
		return g.sendToPage(r, p, c, waited)
	}
	p.principal.cleared = &cleared{id: c.ID, tool: d.op.Name, digest: Digest(d.op.Arguments)}
	return nil
}

// askClearance asks once.
func (g *Guard) askClearance(ctx context.Context, p *passage) (oauth.Clearance, error) {
	d := p.demand
	c, err := g.c.Clearances.Clear(NewContext(ctx, p.principal), p.presented.Token, oauth.ClearanceDemand{
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

// awaitClearance asks until the person is done, or the client should hear something.
func (g *Guard) awaitClearance(ctx context.Context, p *passage, c oauth.Clearance) (oauth.Clearance, error) {
	defer g.waiting.add(p.person(), -1)
	if g.waiting.add(p.person(), 1) > maxWaiting {
		return c, nil
	}
	ctx, cancel := context.WithTimeout(ctx, g.clearanceWait)
	defer cancel()
	tick := time.NewTicker(g.clearancePoll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return c, nil
		case <-tick.C:
		}
		// Not ended halfway: a permission could be used up of which this call does not hear.
		next, err := g.askClearance(context.WithoutCancel(ctx), p)
		if err != nil || next.Cleared || next.Refused {
			return next, err
		}
		c = next
	}
}

// takeAnswer takes what a client says to our question out of a request of 2026-07-28, which goes on as if the question
// had not been asked.
func (p *passage) takeAnswer(r *http.Request) (action string, refused *refusal) {
	if !mcp.IsStateless(first(r.Header, mcp.HeaderVersion)) {
		return "", nil
	}
	action, body, err := message.TakeAnswer(p.body, clearanceQuestion, clearanceState)
	if err != nil {
		return "", &refusal{
			outcome: OutcomeAmbiguous, status: http.StatusBadRequest, code: mcp.CodeInvalidParams, id: p.envelope.ID,
			text: "The answers in the request are malformed or ambiguous.", err: ambiguous(err),
		}
	}
	p.body = body
	return action, nil
}

// sendToPage tells a client to send its person to the page: by a question if it can show links, else by a challenge.
func (g *Guard) sendToPage(r *http.Request, p *passage, c oauth.Clearance, waited bool) *refusal {
	refused := &refusal{outcome: OutcomeClearanceRequired, status: http.StatusOK, id: p.envelope.ID}
	version := first(r.Header, mcp.HeaderVersion)
	switch {
	case waited: // the person knows of the page: to ask again would open it once more
		refused.text = "This call has not been approved yet. Open " + c.URL + " to do so, then call again."
	case mcp.IsStateless(version) && message.ShowsLinks(message.Member(p.meta(), mcp.MetaCapabilities)):
		question := map[string]any{"mode": "url", "url": c.URL, "message": p.demand.question()}
		request := map[string]any{"method": "elicitation/create", "params": question}
		refused.result = map[string]any{ // RS-178, RS-179; the question has no id there (RS-204)
			"resultType": "input_required", "inputRequests": map[string]any{clearanceQuestion: request},
		}
		if state := message.KeepAnswers(p.body, clearanceState); state != "" {
			refused.result["requestState"] = state
		}
	case version == mcp.Rev20251125 && g.showsLinks(r.Context(), p): // RS-125
		refused.code, refused.text = mcp.CodeURLElicitationNeeded, p.demand.question()
		refused.data = map[string]any{"elicitations": []any{map[string]any{
			"mode": "url", "elicitationId": c.ID, "url": c.URL, "message": p.demand.question(),
		}}}
	default:
		return g.challengeClearance(r, p, c)
	}
	return refused
}

// meta is _meta of the only message.
func (p *passage) meta() json.RawMessage { return p.envelope.Messages[0].Meta }

// challengeClearance has a client send its person to the page as for a step-up, and shows the link where it cannot.
func (g *Guard) challengeClearance(r *http.Request, p *passage, c oauth.Clearance) *refusal {
	refused := g.challenged(OutcomeClearanceRequired, http.StatusForbidden, oauth.InsufficientScope,
		"A person has to approve this call.", &ClearanceError{p.demand.need})
	refused.text = "A person has to approve this call. Open " + c.URL + " to do so, then call again."
	own := oauth.Scopes{oauth.ScopeClearance + c.ID}
	refused.challenge.Scope, refused.id = g.stepUp(r, p.need, p.principal.Scopes).Union(own), p.envelope.ID
	return refused
}

// question is what the client shows beside the link. It does not name the person (RS-201).
func (d *demand) question() string {
	tool := "the tool " + shown(d.op.Name)
	if d.need.By == oauth.ClearanceByOther {
		return "Another person has to approve this call of " + tool + ". Please open the page to see who, and what is asked."
	}
	return "You have to approve this call of " + tool + ". Please look at it in your browser."
}

// shown is the name of a tool for people: the client has chosen it where a rule is for a pattern.
func shown(name string) string {
	const longest = 64
	if len(name) > longest || slices.ContainsFunc([]rune(name), func(c rune) bool { return !unicode.IsPrint(c) }) {
		return strconv.QuoteToASCII(cut(name, longest))
	}
	return name
}

// uncleared refuses a call about which no person is asked any more.
func (p *passage) uncleared(text string) *refusal {
	return &refusal{
		outcome: OutcomeClearanceRefused, status: http.StatusForbidden, id: p.envelope.ID, text: text,
		err: &ClearanceError{p.demand.need},
	}
}

// cannotAsk is the answer when no person could be asked.
func (g *Guard) cannotAsk(p *passage, err error) *refusal {
	var said *oauth.Error
	if !errors.As(err, &said) || errors.Is(err, ErrUnavailable) {
		return p.unchecked(err)
	}
	switch said.Code {
	case oauth.ServerError, oauth.TemporarilyUnavailable:
		return p.unchecked(err)
	case oauth.SlowDown:
		return p.limited("Too many calls wait for a person.", max(said.RetryAfter, time.Second))
	case oauth.InvalidToken, oauth.InvalidGrant: // it has ended since it was checked
		refused := g.challenged(OutcomeInvalidToken, http.StatusUnauthorized, oauth.InvalidToken,
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
