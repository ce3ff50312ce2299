package console

import (
	"net/url"
	"reflect"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/web"
)

// tool shows a tool of an MCP server with what has changed of it, and leads to where it is accepted.
func (v *view) tool(d admin.ToolDifference, p *web.Console) {
	n, subject := nounOf("resource tool"), subjectOf(v.verbs["resource tool"], v.r.URL.Query())
	all := members(reflect.ValueOf(d.WatchedTool))
	p.Title, p.Trail = d.Name, v.trailOfTools(n, subject)
	p.Badges = toolBadges(d.WatchedTool)
	p.Acts = v.actsOn([]string{"resource accept"}, all, nil, subject)
	p.Parts = append(v.parts(n, all, subject), definition(d))
}

func toolBadges(t admin.WatchedTool) []web.ConsoleBadge {
	out := []web.ConsoleBadge{{Text: t.State, Tone: toolTones[t.State]}}
	if t.Held {
		out = append(out, web.ConsoleBadge{Text: "held back", Tone: "bad"})
	}
	return out
}

// toolTones are the tones of the states of a tool.
var toolTones = map[string]string{admin.ToolAccepted: "good", admin.ToolChanged: "warn", admin.ToolNew: "warn"}

// definition is the text of a tool's definitions.
func definition(d admin.ToolDifference) web.ConsoleText {
	text := web.ConsoleText{
		Title: "What has changed", Text: strings.Join(d.Lines, "\n"),
		Lead: "- begins a line that was accepted and is gone, + a new one. A description is an instruction to a model.",
	}
	if d.Offered == "" {
		text.Title, text.Lead = "Its definition", "A description is an instruction to a model."
	}
	return text
}

// trailOfTools leads from a tool to the list of the tools of its MCP server.
func (v *view) trailOfTools(n noun, subject url.Values) []web.ConsoleLink {
	of := subjectOf(v.verbs["resource tools"], subject)
	return append(v.trail(n, of), web.ConsoleLink{Name: "Tools", URL: v.url("resource tools", of)})
}

// acceptance shows both definitions of a tool, with a form for each of them. A form carries the digest of the
// definition that the page shows, so that a definition is accepted only if the person has seen it. The page is the
// same after a definition has changed in between: it then shows the newer one.
func (v *view) acceptance(status int, verb admin.Verb, state actState, problem string) {
	n, subject := nounOf(verb.Spec().Name), state.Subject
	of := admin.ToolOf{URI: subject.Get("uri"), Name: subject.Get("name")}
	d, err := admin.ResourceTool.Do(v.r.Context(), v.as, of)
	if err != nil {
		v.failed(err)
		return
	}
	p := web.Console{
		Title: actName(verb.Spec().Name) + ": " + d.Name, Badges: toolBadges(d.WatchedTool), Problem: problem,
		Trail: v.trailOfTools(n, subject), Parts: []web.ConsolePart{definition(d)},
	}
	if d.Offered == "" {
		p.Lead = "The MCP server describes the tool as it was accepted, so there is nothing to accept."
		v.page(status, n.name, p)
		return
	}
	for _, c := range []struct{ digest, title, button string }{
		{d.Offered, "Accept the lines with +", "Accept the new definition"},
		{d.Accepted, "Keep the lines with -", "Keep the accepted definition"},
	} {
		if c.digest == "" { // of a new tool
			continue
		}
		state.Shown = url.Values{"digest": {c.digest}}
		step, err := v.visitors.Seal(v.w, v.r, purposeAct, state)
		if err != nil {
			v.visitors.Fail(v.w, v.r, err)
			return
		}
		p.Parts = append(p.Parts, web.ConsoleForm{
			Title: c.title, Lead: "Digest: " + c.digest, Action: v.url(verb.Spec().Name, subject), Step: step,
			Button: c.button, BackURL: v.url("resource tool", subject),
		})
	}
	v.page(status, n.name, p)
}
