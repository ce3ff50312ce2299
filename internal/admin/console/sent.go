package console

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"reflect"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/pages"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// The limits for sent forms.
const (
	maxSent = 10_000         // per user
	sentFor = 24 * time.Hour // longer than any form is valid
	// runsFor is how long an operation may run, even if its browser is gone. After endedAfter it
	// has ended, even if its server was killed.
	runsFor    = time.Minute
	endedAfter = runsFor + 15*time.Second
	// waitsFor is how long a repeated form waits for the first one. asksAgain is the polling
	// interval.
	waitsFor  = 10 * time.Second
	asksAgain = 50 * time.Millisecond
	// secretFor is how long the same form shows a secret again. After a double click, the browser
	// shows only the second response.
	secretFor = 10 * time.Second
)

// purposeSent is the encryption purpose for the stored result of a form.
const purposeSent = "outcome of a form"

// outcome is the stored result of a form.
type outcome struct {
	Text     string      `json:"t,omitempty"` // the change that was made; "" if unknown
	To       string      `json:"l,omitempty"` // the page that shows it
	Proposal string      `json:"p,omitempty"` // set if the operation was proposed
	Secrets  [][2]string `json:"s,omitempty"` // pairs of name and value
	At       time.Time   `json:"a"`
}

// begin reports whether a form is sent for the first time, to this server or another replica.
// Otherwise it answers the request.
func (v *view) begin(verb admin.Verb, state actState) (key storage.Hash, first bool) {
	key = secrets.Hash("form of the console\x00" + state.UserID + "\x00" + state.Nonce)
	r := storage.KeyedRequest{
		Key: key, Caller: secrets.Hash("console\x00" + state.UserID), Digest: key[:],
	}
	ctx, cancel := context.WithTimeout(v.r.Context(), waitsFor)
	defer cancel()
	for {
		now := v.cfg.Now()
		r.Until, r.ExpiresAt = now.Add(endedAfter), now.Add(sentFor)
		stored, begun, err := v.cfg.Requests.BeginKeyed(ctx, r, maxSent, now)
		switch {
		case errors.Is(err, storage.ErrFull):
			v.stop(http.StatusTooManyRequests, "Not done", "You have changed very much in the last 24 hours. Nothing was "+
				"done now; go on later, or by the command line.")
			return key, false
		case err != nil && ctx.Err() == nil:
			v.visitors.Fail(v.w, v.r, err)
			return key, false
		case begun:
			return key, true
		case err == nil && (stored.Sealed != nil || !now.Before(stored.Until)):
			v.again(verb, state, v.outcomeOf(stored))
			return key, false
		}
		select {
		case <-ctx.Done():
			v.unfinished(verb, state)
			return key, false
		case <-time.After(asksAgain):
		}
	}
}

// outcomeOf returns the stored result of a form. It is empty if no result was stored, or it cannot
// be decrypted any more.
func (v *view) outcomeOf(stored storage.KeyedRequest) (o outcome) {
	text, err := v.cfg.Ring.Open(purposeSent, stored.Sealed, stored.Key[:])
	if err == nil {
		err = json.Unmarshal(text, &o)
	}
	if err != nil {
		return outcome{}
	}
	return o
}

// settle stores the result of a form. A form that made no change can be sent again.
func (v *view) settle(key storage.Hash, o outcome, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(v.r.Context()), endedAfter-runsFor)
	defer cancel()
	if untouched(err) {
		v.note(v.cfg.Requests.ForgetKeyed(ctx, key))
		return
	}
	o.At = v.cfg.Now()
	text, err := json.Marshal(o)
	if err == nil {
		err = v.cfg.Requests.EndKeyed(ctx, key, v.cfg.Ring.Seal(purposeSent, text, key[:]))
	}
	v.note(err)
}

// note logs a result that could not be stored. The form is not run again.
func (v *view) note(err error) {
	if err != nil {
		v.cfg.Log.ErrorContext(v.r.Context(), "what a form of the console came to was not kept", "error", err)
	}
}

// untouched reports whether an operation failed before it changed anything.
func untouched(err error) bool {
	for _, kind := range []error{
		admin.ErrInvalid, admin.ErrConflict, admin.ErrForbidden, admin.ErrNotFound, admin.ErrUnavailable,
	} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return errors.As(err, new(*admin.StaleError))
}

// outcome returns the result to store for an operation that may have changed something.
func (v *view) outcome(verb admin.Verb, out reflect.Value, state actState, err error) outcome {
	s := verb.Spec()
	proposed := (*admin.ProposedError)(nil)
	switch {
	case errors.As(err, &proposed):
		return outcome{Text: "It was proposed.", Proposal: proposed.Proposal.ID}
	case err != nil:
		return outcome{To: v.back(nounOf(s.Name), s, state.Subject)}
	}
	o := outcome{Text: doneText(s, state.Called), To: v.leads(s, out, state.Subject)}
	if s.Secret {
		for _, part := range v.once(nounOf(s.Name), members(out)) {
			secret, _ := part.(pages.ConsoleSecret)
			for _, f := range secret.Secrets {
				o.Secrets = append(o.Secrets, [2]string{f.Name, f.Value.Text})
			}
		}
	}
	return o
}

// again answers a form that was sent before.
func (v *view) again(verb admin.Verb, state actState, o outcome) {
	s := verb.Spec()
	n := nounOf(s.Name)
	p := pages.Console{Title: "Already done", Trail: v.trail(n, state.Subject)}
	switch {
	case o.Text == "":
		p.Title, p.Problem = "Outcome not known", "This form was sent before, and it is not known whether it was carried out. "+
			"It is not carried out again. Look at what there is, and begin again if it was not done."
		v.seeThere(&p, cmp.Or(o.To, v.back(n, s, state.Subject)))
		v.page(http.StatusConflict, n.name, p)
		return
	case o.Proposal != "":
		p.Title, p.Lead = "Already proposed", "This form was sent before, and proposed once what it asks for."
		v.seeProposal(&p, o.Proposal)
	default:
		p.Lead = "This form was sent before, and carried out once. " + o.Text
		v.seeThere(&p, o.To)
	}
	switch recent := v.cfg.Now().Sub(o.At) < secretFor; {
	case len(o.Secrets) > 0 && recent:
		part := secretPart()
		for _, s := range o.Secrets {
			part.Secrets = append(part.Secrets, pages.ConsoleFact{Name: s[0], Value: pages.ConsoleCell{Text: s[1]}})
		}
		p.Parts = append(p.Parts, part)
	case len(o.Secrets) > 0:
		p.Lead += " Its secret was shown then, and cannot be shown again: if you do not have it, make a new one."
	}
	v.page(http.StatusOK, n.name, p)
}

// unfinished answers a form that was sent before and is still running.
func (v *view) unfinished(verb admin.Verb, state actState) {
	s := verb.Spec()
	n := nounOf(s.Name)
	p := pages.Console{
		Title: "Not finished", Trail: v.trail(n, state.Subject),
		Lead: "This form was sent before, and is still being carried out, once. Look in a minute.",
	}
	v.seeThere(&p, v.back(n, s, state.Subject))
	v.page(http.StatusConflict, n.name, p)
}

func (v *view) seeThere(p *pages.Console, to string) {
	p.Acts = append(p.Acts, pages.ConsoleLink{Name: "See what there is now", URL: to})
}

func (v *view) seeProposal(p *pages.Console, id string) {
	if v.may("proposal show") {
		p.Acts = append(p.Acts, pages.ConsoleLink{
			Name: "Show proposal " + shortened(id), URL: v.url("proposal show", url.Values{"id": {id}}),
		})
	}
}
