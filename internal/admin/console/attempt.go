package console

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/attempt"
	"github.com/mcp-authd/mcp-authd/web"
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
func (v *view) attempt(a admin.AttemptDetails, p *web.Console) {
	p.Title = "Attempt " + a.Reference
	p.Badges = []web.ConsoleBadge{verdictBadge(a.OK, a.Pending, a.Fault)}
	p.Live = a.Pending
	query := url.Values{"reference": {a.Reference}}
	p.Acts = append(p.Acts,
		web.ConsoleLink{Name: "Bundle (JSON)", URL: v.url(bundlePage, query)},
		web.ConsoleLink{Name: "Bundle (page)", URL: v.url(bundlePage, url.Values{
			"reference": {a.Reference}, "format": {"html"},
		})},
	)
	p.Parts = append(p.Parts, verdictOf(a.Verdict), v.attemptFacts(a), v.timeline(a))
}

func verdictOf(v attempt.Verdict) web.ConsoleVerdict {
	out := web.ConsoleVerdict{
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
			out.Advice = append(out.Advice, web.ConsoleAdvice{Who: side.who, Text: side.text, Turn: turn})
		}
	}
	return out
}

// differenceOf shows where two texts start to differ, with the common text before that.
func differenceOf(name string, d *attempt.Difference) *web.ConsoleDifference {
	if d == nil {
		return nil
	}
	same := 0
	for same < len(d.Got) && same < len(d.Want) && d.Got[same] == d.Want[same] {
		same++
	}
	return &web.ConsoleDifference{Name: name, At: d.At, Same: d.Got[:same], Got: d.Got[same:], Want: d.Want[same:]}
}

func (v *view) attemptFacts(a admin.AttemptDetails) web.ConsoleFacts {
	client := web.ConsoleCell{Text: a.ClientName}
	if nameOr(&client, a.ClientID); a.ClientID != "" && v.may("client show") {
		client.URL = v.url("client show", url.Values{"id": {a.ClientID}})
	}
	if a.ClientName == "" && a.ClientID == "" {
		client.Text, client.Code = "", false
	}
	person := web.ConsoleCell{Text: a.Person}
	personLink(v, nil, &person)
	now := v.cfg.Now()
	return web.ConsoleFacts{Facts: filled(
		web.ConsoleFact{Name: "Client", Value: client},
		web.ConsoleFact{Name: "Client ID", Value: web.ConsoleCell{Text: a.ClientID, Code: true}},
		web.ConsoleFact{Name: "User-Agent", Value: web.ConsoleCell{Text: a.Agent, Said: true}},
		web.ConsoleFact{Name: "Person", Value: person},
		web.ConsoleFact{Name: "MCP server", Value: web.ConsoleCell{Text: a.Resource, Code: true}},
		web.ConsoleFact{Name: "Fault", Value: web.ConsoleCell{Text: string(a.Fault), Code: true}},
		web.ConsoleFact{Name: "Began", Value: web.ConsoleCell{At: a.StartedAt, Text: exactly(a.StartedAt, now)}},
		web.ConsoleFact{Name: "Took", Value: web.ConsoleCell{
			Text: strings.TrimPrefix(after(a.EndedAt.Sub(a.StartedAt)), "+"),
		}},
	)}
}

// filled returns the facts that are not blank.
func filled(all ...web.ConsoleFact) (out []web.ConsoleFact) {
	for _, f := range all {
		if !f.Value.Blank() {
			out = append(out, f)
		}
	}
	return out
}

func (v *view) timeline(a admin.AttemptDetails) web.ConsoleSteps {
	out := web.ConsoleSteps{Title: "What took place"}
	for i, s := range a.Events {
		out.Steps = append(out.Steps, stepOf(i, s, a))
	}
	if a.LeftOut > 0 {
		out.Note = counted(a.LeftOut, "step", "steps") + " in the middle are left out."
	}
	return out
}

func stepOf(i int, s attempt.Step, a admin.AttemptDetails) web.ConsoleStep {
	asked := strings.TrimSpace(s.Request.Method + " " + s.Request.Path)
	out := web.ConsoleStep{
		ID: fmt.Sprintf("step-%d", i+1), Name: steps[s.Kind], At: s.At, After: after(s.At.Sub(a.StartedAt)),
		Text: asked, Detail: "Request and answer", Decided: a.Fault != "" && s.Reference == a.Decided,
	}
	if out.Name == "" {
		out.Name = caption(string(s.Kind))
	}
	status := web.ConsoleBadge{Text: fmt.Sprint(s.Answer.Status)}
	if status.Tone = "good"; s.Answer.Error != "" || s.Answer.Status >= 400 {
		status.Tone = "bad"
		status.Text = strings.TrimSpace(status.Text + " " + s.Answer.Error)
	}
	out.Badges = []web.ConsoleBadge{status}
	code := func(name, text string) web.ConsoleFact {
		return web.ConsoleFact{Name: name, Value: web.ConsoleCell{Text: text, Code: true}}
	}
	plain := func(name, text string) web.ConsoleFact {
		return web.ConsoleFact{Name: name, Value: web.ConsoleCell{Text: text}}
	}
	out.Facts = filled(
		code("Reference", s.Reference),
		web.ConsoleFact{Name: "Sent", Value: params(s.Request.Params)},
		web.ConsoleFact{Name: "User-Agent", Value: web.ConsoleCell{Text: s.Request.Agent, Said: true}},
		code("Address", s.Keys.Address),
		plain("Answered", s.Answer.Description),
		plain("Because", s.Answer.Reason),
		plain("Shown", s.Answer.Page),
		code("Sent to", s.Answer.To),
		web.ConsoleFact{Name: "With", Value: params(s.Answer.Params)},
		code("Took", fmt.Sprintf("%.2f ms", s.Answer.Took)),
	)
	for _, e := range s.Expected {
		out.Facts = append(out.Facts, filled(web.ConsoleFact{
			Name: "Expected " + e.Name, Value: web.ConsoleCell{List: e.Values, Code: true},
		})...)
		if d := differenceOf(e.Name, e.Difference); d != nil {
			out.Differences = append(out.Differences, *d)
		}
	}
	return out
}

// params shows parameters, one per line.
func params(all []attempt.Param) web.ConsoleCell {
	c := web.ConsoleCell{Code: true}
	for _, p := range all {
		c.List = append(c.List, p.Name+"="+p.Value)
	}
	return c
}
