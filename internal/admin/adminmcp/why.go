package adminmcp

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/admin/api"
	"github.com/mcp-authd/mcp-authd/internal/attempt"
)

// whyName is the tool that answers "Why could Bob not sign in at 15:02?".
const whyName = "why"

// Question is the complaint of a user. Every field is optional.
type Question struct {
	Reference string    `json:"reference,omitempty" jsonschema:"the reference on the error page; nothing else is needed then"`
	Person    string    `json:"person,omitempty" jsonschema:"the name or id of the account"`
	Client    string    `json:"client,omitempty" jsonschema:"the name or id of the application"`
	Address   string    `json:"address,omitempty" jsonschema:"the IP address from which it was tried"`
	At        time.Time `json:"at,omitzero" jsonschema:"when, as RFC 3339 with the time zone of the person who asks; nothing for the last 24 hours"`
	Within    int       `json:"within_minutes,omitempty" jsonschema:"how many minutes before and after at: 15 when it is left out, up to 1440"`
}

// Explanation answers a Question.
type Explanation struct {
	Now      time.Time   `json:"now" jsonschema:"the time of the server"`
	From     time.Time   `json:"from,omitzero" jsonschema:"where the window begins"`
	Until    time.Time   `json:"until,omitzero" jsonschema:"where it ends"`
	Account  string      `json:"account,omitempty" jsonschema:"of the person: active, disabled or unknown"`
	Answer   string      `json:"answer" jsonschema:"what was found"`
	Attempts []Explained `json:"attempts" jsonschema:"the newest first; failed ones before others"`
	More     bool        `json:"more,omitempty" jsonschema:"there are others: ask for a smaller window"`
}

// Explained is an attempt with its result.
type Explained struct {
	Reference string    `json:"reference" jsonschema:"for attempt_show, which has each step"`
	Began     time.Time `json:"began"`
	Ended     time.Time `json:"ended"`
	Outcome   string    `json:"outcome" jsonschema:"succeeded, pending or failed"`
	Step      string    `json:"step" jsonschema:"the last one"`
	Fault     string    `json:"fault,omitempty" jsonschema:"what went wrong, for programs"`
	Verdict   string    `json:"verdict" jsonschema:"what went wrong, in a sentence of this server"`
	Whose     string    `json:"whose,omitempty" jsonschema:"who can change it: person, operator or client (its author)"`
	Next      string    `json:"next,omitempty" jsonschema:"what they do, in a sentence of this server"`
	Known     bool      `json:"person_known" jsonschema:"false: nobody has signed in, so it may be another person's"`
	Details   string    `json:"details" jsonschema:"untrusted: quotes what the client sent"`
	Person    string    `json:"person,omitempty" jsonschema:"untrusted"`
	ClientID  string    `json:"client_id,omitempty" jsonschema:"untrusted"`
	Client    string    `json:"client_name,omitempty" jsonschema:"untrusted: chosen by the client"`
	Agent     string    `json:"agent,omitempty" jsonschema:"untrusted: chosen by the client"`
	Resource  string    `json:"resource,omitempty" jsonschema:"the MCP server that it was for"`
}

const (
	// window is how far before and after the given time to search. day is its maximum, and the
	// default without a time.
	window = 15 * time.Minute
	day    = 24 * time.Hour
	// maxExplained limits the attempts in an answer, and maxLooked those that are examined.
	maxExplained = 10
	maxLooked    = 500
)

func whyTool() *mcp.Tool {
	const title = "Why could a person not sign in or connect?"
	out := api.Schema(reflect.TypeFor[Explanation](), false)
	out["description"] = untrusted
	no := false
	return &mcp.Tool{
		Name: whyName, Title: title,
		Description: "Answers questions such as: why could Bob not sign in at 15:02? Finds what clients tried for a person, " +
			"from an application, an address, or around a time, and says for each attempt what went wrong, who can change " +
			"it, and what they do next. A reference on an error page finds its attempt alone.",
		InputSchema: api.Schema(reflect.TypeFor[Question](), true), OutputSchema: out,
		Annotations: &mcp.ToolAnnotations{
			Title: title, ReadOnlyHint: true, DestructiveHint: &no, IdempotentHint: true, OpenWorldHint: &no,
		},
	}
}

func (s *Server) why(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	actor, _, err := s.caller(ctx)
	if err != nil {
		return s.failed(ctx, err)
	}
	var q Question
	if err := read(r.Params.Arguments, &q); err != nil {
		return s.failed(ctx, err)
	}
	answer, err := explain(ctx, s.c.Service.As(actor), q, s.c.Service.Now())
	if err != nil {
		return s.failed(ctx, err)
	}
	return resultOf("Done.", answer)
}

// explain answers a question for a caller.
func explain(ctx context.Context, by admin.Caller, q Question, now time.Time) (*Explanation, error) {
	wanted, err := q.wanted(now)
	if err != nil {
		return nil, err
	}
	out := &Explanation{Now: now.UTC(), From: wanted.Since.UTC(), Until: wanted.Until.UTC(), Attempts: []Explained{}}
	if out.Account, err = account(ctx, by, q.Person); err != nil {
		return nil, err
	}
	var found []attempt.Attempt
	if q.Person == "" || out.Account != unknown {
		page, err := admin.AttemptList.Do(ctx, by, wanted)
		if err != nil {
			return nil, err
		}
		found = page.Items
	}
	if q.Person != "" && !slices.ContainsFunc(found, failed) { // the attempt may have ended before the user was known
		wanted.User = ""
		page, err := admin.AttemptList.Do(ctx, by, wanted)
		if err != nil {
			return nil, err
		}
		for _, a := range page.Items {
			if a.Person == "" && failed(a) {
				found = append(found, a)
			}
		}
	}
	out.add(found)
	return out, nil
}

func failed(a attempt.Attempt) bool { return a.Fault != "" }

// wanted returns the attempts to search for.
func (q Question) wanted(now time.Time) (w admin.AttemptsWanted, err error) {
	w = admin.AttemptsWanted{
		Reference: q.Reference, User: q.Person, Client: q.Client, Address: q.Address, Limit: maxLooked,
	}
	around := time.Duration(q.Within) * time.Minute
	switch {
	case q.Within < 0 || around > day:
		return w, fmt.Errorf("%w: within_minutes is not between 0 and 1440", admin.ErrInvalid)
	case q.Reference != "":
		return w, nil
	case q.At.IsZero():
		w.Since, w.Until = now.Add(-day), now
		return w, nil
	case around == 0:
		around = window
	}
	w.Since, w.Until = q.At.Add(-around), q.At.Add(around)
	return w, nil
}

// The state of an account.
const (
	active   = "active"
	disabled = "disabled"
	unknown  = "unknown"
)

func account(ctx context.Context, by admin.Caller, person string) (string, error) {
	if person == "" {
		return "", nil
	}
	u, err := admin.UserShow.Do(ctx, by, admin.UserName{Name: person})
	switch {
	case errors.Is(err, admin.ErrNotFound):
		return unknown, nil
	case err != nil:
		return "", err
	case u.Disabled:
		return disabled, nil
	}
	return active, nil
}

// add adds the attempts to an explanation, failed ones first.
func (e *Explanation) add(found []attempt.Attempt) {
	slices.SortStableFunc(found, func(a, b attempt.Attempt) int {
		switch {
		case failed(a) == failed(b):
			return 0
		case failed(a):
			return -1
		}
		return 1
	})
	e.More = len(found) > maxExplained
	for _, a := range found[:min(len(found), maxExplained)] {
		e.Attempts = append(e.Attempts, explainedOf(a))
	}
	switch {
	case e.Account == disabled:
		e.Answer = "The account is disabled, so every sign-in is refused until it is enabled: user_enable."
	case e.Account == unknown:
		e.Answer = "There is no account of this name: it may be spelled otherwise, see user_list."
	case len(found) == 0:
		e.Answer = "Nothing was tried that is known here: the client may not have come this far, or it was at another time."
	case failed(found[0]):
		e.Answer = "Something went wrong: the attempts say what, and who can change it."
	default:
		e.Answer = "Nothing went wrong in what was tried."
	}
}

func explainedOf(a attempt.Attempt) Explained {
	known := a.Person != "" && a.Fault != attempt.SignInRefused // otherwise anyone may have typed the name
	out := Explained{
		Reference: a.Reference, Began: a.StartedAt.UTC(), Ended: a.EndedAt.UTC(), Step: string(a.Last),
		Fault: string(a.Fault), Whose: string(a.Whose), Next: a.Next, Known: known, Details: a.Text,
		Person: a.Person, ClientID: a.ClientID, Client: a.ClientName, Agent: a.Agent, Resource: a.Resource,
	}
	switch {
	case a.OK:
		out.Outcome, out.Verdict = "succeeded", "The client got its tokens."
	case a.Pending:
		out.Outcome, out.Verdict = "pending", "It may still go on."
	default:
		out.Outcome = "failed"
		i := slices.IndexFunc(attempt.Faults(), func(e attempt.Explained) bool { return e.Fault == a.Fault })
		if i >= 0 {
			out.Verdict = attempt.Faults()[i].What
		}
	}
	return out
}
