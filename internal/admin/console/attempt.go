package console

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/attempt"
	"github.com/mcp-authd/mcp-authd/internal/pages"
)

// steps describes the steps of an attempt.
var steps = map[attempt.Kind]string{
	attempt.Discovery:    "Metadata are read",
	attempt.Registration: "The client registers",
	attempt.Authorize:    "Authorization request",
	attempt.SignIn:       "The person signs in",
	attempt.Provider:     "Sign-in at a provider",
	attempt.Consent:      "The person decides",
	attempt.Token:        "The client asks for tokens",
	attempt.Refresh:      "Refresh",
	attempt.Call:         "Call of the MCP server",
}

// attempt shows one attempt: its result, and each of its steps.
func (v *view) attempt(a admin.AttemptDetails, p *pages.Console) {
	p.Title = "Attempt " + a.Reference
	p.Badges = []pages.ConsoleBadge{verdictBadge(a.OK, a.Pending, a.Fault)}
	p.Live = a.Pending
	query := url.Values{"reference": {a.Reference}}
	p.Acts = append(p.Acts,
		pages.ConsoleLink{Name: "Bundle (JSON)", URL: v.url(bundlePage, query)},
		pages.ConsoleLink{Name: "Bundle (page)", URL: v.url(bundlePage, url.Values{
			"reference": {a.Reference}, "format": {"html"},
		})},
	)
	p.Parts = append(p.Parts, verdictOf(a.Verdict), v.attemptFacts(a), v.timeline(a))
}

func verdictOf(v attempt.Verdict) pages.ConsoleVerdict {
	out := pages.ConsoleVerdict{
		Tone: verdictBadge(v.OK, v.Pending, v.Fault).Tone, Text: v.Text, Known: v.Known,
		Difference: differenceOf("", v.Difference),
	}
	for _, side := range []struct {
		whose     attempt.Whose
		who, text string
	}{
		{attempt.OfPerson, "The person", v.Advice.Person},
		{attempt.OfOperator, "The operator", v.Advice.Operator},
		{attempt.OfClient, "The client's author", v.Advice.Client},
	} {
		if side.text != "" {
			turn := v.Whose == side.whose
			out.Advice = append(out.Advice, pages.ConsoleAdvice{Who: side.who, Text: side.text, Turn: turn})
		}
	}
	return out
}

// differenceOf shows where two texts start to differ, with the common text before that.
func differenceOf(name string, d *attempt.Difference) *pages.ConsoleDifference {
	if d == nil {
		return nil
	}
	same := 0
	for same < len(d.Got) && same < len(d.Want) && d.Got[same] == d.Want[same] {
		same++
	}
	return &pages.ConsoleDifference{Name: name, At: d.At, Same: d.Got[:same], Got: d.Got[same:], Want: d.Want[same:]}
}

func (v *view) attemptFacts(a admin.AttemptDetails) pages.ConsoleFacts {
	client := pages.ConsoleCell{Text: a.ClientName}
	if nameOr(&client, a.ClientID); a.ClientID != "" && v.may("client show") {
		client.URL = v.url("client show", url.Values{"id": {a.ClientID}})
	}
	if a.ClientName == "" && a.ClientID == "" {
		client.Text, client.Code = "", false
	}
	person := pages.ConsoleCell{Text: a.Person}
	personLink(v, nil, &person)
	now := v.cfg.Now()
	return pages.ConsoleFacts{Facts: filled(
		pages.ConsoleFact{Name: "Client", Value: client},
		pages.ConsoleFact{Name: "Client ID", Value: pages.ConsoleCell{Text: a.ClientID, Code: true}},
		pages.ConsoleFact{Name: "User-Agent", Value: pages.ConsoleCell{Text: a.Agent, Said: true}},
		pages.ConsoleFact{Name: "Person", Value: person},
		pages.ConsoleFact{Name: "MCP server", Value: pages.ConsoleCell{Text: a.Resource, Code: true}},
		pages.ConsoleFact{Name: "Fault", Value: pages.ConsoleCell{Text: string(a.Fault), Code: true}},
		pages.ConsoleFact{Name: "Began", Value: pages.ConsoleCell{At: a.StartedAt, Text: exactly(a.StartedAt, now)}},
		pages.ConsoleFact{Name: "Took", Value: pages.ConsoleCell{
			Text: strings.TrimPrefix(after(a.EndedAt.Sub(a.StartedAt)), "+"),
		}},
	)}
}

// filled returns the facts that are not blank.
func filled(all ...pages.ConsoleFact) (out []pages.ConsoleFact) {
	for _, f := range all {
		if !f.Value.Blank() {
			out = append(out, f)
		}
	}
	return out
}

func (v *view) timeline(a admin.AttemptDetails) pages.ConsoleSteps {
	out := pages.ConsoleSteps{Title: "What took place"}
	for i, s := range a.Events {
		out.Steps = append(out.Steps, stepOf(i, s, a))
	}
	if a.LeftOut > 0 {
		out.Note = counted(a.LeftOut, "step", "steps") + " in the middle are left out."
	}
	return out
}

func stepOf(i int, s attempt.Step, a admin.AttemptDetails) pages.ConsoleStep {
	asked := strings.TrimSpace(s.Request.Method + " " + s.Request.Path)
	out := pages.ConsoleStep{
		ID: fmt.Sprintf("step-%d", i+1), Name: steps[s.Kind], At: s.At, After: after(s.At.Sub(a.StartedAt)),
		Text: asked, Detail: "Request and answer", Decided: a.Fault != "" && s.Reference == a.Decided,
	}
	if out.Name == "" {
		out.Name = caption(string(s.Kind))
	}
	status := pages.ConsoleBadge{Text: fmt.Sprint(s.Answer.Status)}
	if status.Tone = "good"; s.Answer.Error != "" || s.Answer.Status >= 400 {
		status.Tone = "bad"
		status.Text = strings.TrimSpace(status.Text + " " + s.Answer.Error)
	}
	out.Badges = []pages.ConsoleBadge{status}
	code := func(name, text string) pages.ConsoleFact {
		return pages.ConsoleFact{Name: name, Value: pages.ConsoleCell{Text: text, Code: true}}
	}
	plain := func(name, text string) pages.ConsoleFact {
		return pages.ConsoleFact{Name: name, Value: pages.ConsoleCell{Text: text}}
	}
	out.Facts = filled(
		code("Reference", s.Reference),
		pages.ConsoleFact{Name: "Sent", Value: params(s.Request.Params)},
		pages.ConsoleFact{Name: "User-Agent", Value: pages.ConsoleCell{Text: s.Request.Agent, Said: true}},
		code("Address", s.Keys.Address),
		plain("Answered", s.Answer.Description),
		plain("Because", s.Answer.Reason),
		plain("Shown", s.Answer.Page),
		code("Sent to", s.Answer.To),
		pages.ConsoleFact{Name: "With", Value: params(s.Answer.Params)},
		code("Took", fmt.Sprintf("%.2f ms", s.Answer.Took)),
	)
	for _, e := range s.Expected {
		out.Facts = append(out.Facts, filled(pages.ConsoleFact{
			Name: "Expected " + e.Name, Value: pages.ConsoleCell{List: e.Values, Code: true},
		})...)
		if d := differenceOf(e.Name, e.Difference); d != nil {
			out.Differences = append(out.Differences, *d)
		}
	}
	return out
}

// params shows parameters, one per line.
func params(all []attempt.Param) pages.ConsoleCell {
	c := pages.ConsoleCell{Code: true}
	for _, p := range all {
		c.List = append(c.List, p.Name+"="+p.Value)
	}
	return c
}
