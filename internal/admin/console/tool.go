package console

import (
	"net/url"
	"reflect"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/pages"
)

// tool shows a tool of an MCP server with its changes, and links to the page that accepts them.
func (v *view) tool(d admin.ToolDifference, p *pages.Console) {
	n, subject := nounOf("resource tool"), subjectOf(v.verbs["resource tool"], v.r.URL.Query())
	all := members(reflect.ValueOf(d.WatchedTool))
	p.Title, p.Trail = d.Name, v.trailOfTools(n, subject)
	p.Badges = toolBadges(d.WatchedTool)
	p.Acts = v.actsOn([]string{"resource accept"}, all, nil, subject)
	p.Parts = append(v.parts(n, all, subject), definition(d))
}

func toolBadges(t admin.WatchedTool) []pages.ConsoleBadge {
	out := []pages.ConsoleBadge{{Text: t.State, Tone: toolTones[t.State]}}
	if t.Held {
		out = append(out, pages.ConsoleBadge{Text: "held back", Tone: "bad"})
	}
	return out
}

// toolTones maps the states of a tool to tones.
var toolTones = map[string]string{admin.ToolAccepted: "good", admin.ToolChanged: "warn", admin.ToolNew: "warn"}

// definition shows the text of a tool's definitions.
func definition(d admin.ToolDifference) pages.ConsoleText {
	text := pages.ConsoleText{
		Title: "What has changed", Text: strings.Join(d.Lines, "\n"),
		Lead: "- begins a line that was accepted and is gone, + a new one. A description is an instruction to a model.",
	}
	if d.Offered == "" {
		text.Title, text.Lead = "Its definition", "A description is an instruction to a model."
	}
	return text
}

// trailOfTools links from a tool to the tools of its MCP server.
func (v *view) trailOfTools(n noun, subject url.Values) []pages.ConsoleLink {
	of := subjectOf(v.verbs["resource tools"], subject)
	return append(v.trail(n, of), pages.ConsoleLink{Name: "Tools", URL: v.url("resource tools", of)})
}

// acceptance shows both definitions of a tool, each with a form. A form carries the digest of the
// definition on the page, so that users accept only a definition that they have seen. If a
// definition changed in between, the page shows the newer one.
func (v *view) acceptance(status int, verb admin.Verb, state actState, problem string) {
	n, subject := nounOf(verb.Spec().Name), state.Subject
	of := admin.ToolOf{URI: subject.Get("uri"), Name: subject.Get("name")}
	d, err := admin.ResourceTool.Do(v.r.Context(), v.as, of)
	if err != nil {
		v.failed(err)
		return
	}
	p := pages.Console{
		Title: titleOf(verb.Spec().Name, d.Name), Badges: toolBadges(d.WatchedTool), Problem: problem,
		Trail: v.trailOfTools(n, subject), Parts: []pages.ConsolePart{definition(d)},
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
		if c.digest == "" { // a new tool
			continue
		}
		state.Shown = url.Values{"digest": {c.digest}}
		step, err := v.visitors.Seal(v.w, v.r, purposeAct, state)
		if err != nil {
			v.visitors.Fail(v.w, v.r, err)
			return
		}
		p.Parts = append(p.Parts, pages.ConsoleForm{
			Title: c.title, Lead: "Digest: " + c.digest, Action: v.url(verb.Spec().Name, subject), Step: step,
			Button: c.button, BackURL: v.url("resource tool", subject),
		})
	}
	v.page(status, n.name, p)
}
