package console

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/attempt"
	"github.com/mcp-authd/mcp-authd/internal/label"
	"github.com/mcp-authd/mcp-authd/internal/pages"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// common lists fields that every page shows in the same way.
var common = map[string]shape{
	"client_name": clientLink,
	"user_name":   personLink,
	"problem":     badProblem,
	"scope":       eachWord,
	"input":       eachInput,
	"about":       proposedAbout,
	"left":        notZero,
	"label":       said,
	"browser":     said,
	"agent":       said,
}

// text returns a field of an item as text, or "".
func text(item []member, field string) string {
	if m, ok := memberOf(item, field); ok {
		return scalar(m.value)
	}
	return ""
}

// eachWord shows words one per line.
func eachWord(_ *view, _ []member, c *pages.ConsoleCell) { c.List, c.Text = strings.Fields(c.Text), "" }

// notZero omits a zero.
func notZero(_ *view, _ []member, c *pages.ConsoleCell) {
	if c.Text == "0" {
		c.Text = ""
	}
}

func said(_ *view, _ []member, c *pages.ConsoleCell) { c.Said = true }

// clientLink shows the name that a client gave itself, with a link to the client.
func clientLink(v *view, item []member, c *pages.ConsoleCell) {
	id := cmp.Or(text(item, "client_id"), text(item, "client"))
	nameOr(c, id)
	if id != "" && v.may("client show") {
		c.URL = v.url("client show", url.Values{"id": {id}})
	}
}

// clientName shows that name on the client's own page.
func clientName(_ *view, item []member, c *pages.ConsoleCell) { nameOr(c, text(item, "id")) }

// nameOr shows a name in quotation marks, or an ID if the name is empty.
func nameOr(c *pages.ConsoleCell, id string) {
	if c.Said = c.Text != ""; !c.Said {
		c.Text, c.Code = shortened(id), true
	}
}

// named returns a client's name for use in a sentence.
func named(name, id string) string {
	if name == "" {
		return shortened(id)
	}
	return "“" + label.Claim(name, maxHeading) + "”"
}

// attemptClient shows who tried. A client may have neither a name nor an ID.
func attemptClient(v *view, item []member, c *pages.ConsoleCell) {
	clientLink(v, item, c)
	if c.Text == "" {
		c.Text, c.Code = text(item, "agent"), false
		c.Said = c.Text != ""
	}
}

func personLink(v *view, _ []member, c *pages.ConsoleCell) {
	if c.Text != "" && v.may("user show") {
		c.URL = v.url("user show", url.Values{"name": {c.Text}})
	}
}

func badProblem(_ *view, _ []member, c *pages.ConsoleCell) {
	if c.Text != "" {
		c.Badges = []pages.ConsoleBadge{{Text: "not used", Tone: "bad"}}
	}
}

// stateBadge shows a word as a badge with its tone.
func stateBadge(tones map[string]string) shape {
	return func(_ *view, _ []member, c *pages.ConsoleCell) {
		if c.Text != "" {
			c.Badges, c.Text = []pages.ConsoleBadge{{Text: c.Text, Tone: tones[c.Text]}}, ""
		}
	}
}

// hostsOf returns the distinct hosts of addresses.
func hostsOf(_ *view, _ []member, c *pages.ConsoleCell) {
	var hosts []string
	for _, address := range c.List {
		u, err := url.Parse(address)
		if err != nil {
			continue
		}
		if host := cmp.Or(u.Hostname(), u.Scheme+":"); !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	if more := len(hosts) - 3; more > 0 {
		hosts = append(hosts[:3], "…")
	}
	c.List, c.Code = nil, len(hosts) > 0
	c.Text = strings.Join(hosts, ", ")
}

// auditPerson shows the name of the user, even of a deleted account if the entry recorded the name.
// The ID is below it, because another account may have the name now.
func auditPerson(v *view, item []member, c *pages.ConsoleCell) {
	if name := text(item, "user_name"); name != "" {
		personLink(v, item, c) // with the ID
		c.Note, c.Text, c.Code = shortened(c.Text), name, false
	} else if c.Code = c.Text != ""; c.Code {
		personLink(v, item, c) // with the ID
		c.Text = shortened(c.Text)
	}
}

// auditClient shows a client by the name that it gave itself.
func auditClient(_ *view, item []member, c *pages.ConsoleCell) {
	id := c.Text
	c.Text, c.Code = text(item, "client_name"), false
	if c.Text != "" {
		c.Note = shortened(id)
	}
	nameOr(c, id)
}

// outcomeBadge shows the result of a call or operation.
func outcomeBadge(_ *view, _ []member, c *pages.ConsoleCell) {
	if c.Text == "" {
		return
	}
	tone := map[string]string{"ok": "good", "allowed": "good", "success": "good"}[c.Text]
	c.Badges, c.Text = []pages.ConsoleBadge{{Text: c.Text, Tone: tone}}, ""
}

// heldBack marks a tool that cannot be called until it is accepted.
func heldBack(_ *view, _ []member, c *pages.ConsoleCell) {
	if c.Text == "yes" {
		c.Badges = []pages.ConsoleBadge{{Text: "held back", Tone: "bad"}}
	}
	c.Text = ""
}

// scopeNames shows the names of the scopes of an MCP server.
func scopeNames(_ *view, item []member, c *pages.ConsoleCell) {
	m, _ := memberOf(item, "scopes")
	scopes, ok := m.value.Interface().([]storage.ScopeText)
	if !ok {
		return
	}
	c.Text, c.Code = "", true
	for i, s := range scopes {
		if i == maxLines {
			c.List = append(c.List, "…")
			break
		}
		c.List = append(c.List, s.Name)
	}
}

// maxLines limits the lines of a list value.
const maxLines = 4

// attemptVerdict shows a result with its explanation.
func attemptVerdict(_ *view, item []member, c *pages.ConsoleCell) {
	c.Badges = []pages.ConsoleBadge{verdictBadge(text(item, "ok") == "true", text(item, "pending") == "true",
		attempt.Fault(text(item, "fault")))}
	c.Note, c.Text = c.Text, ""
}

func verdictBadge(ok, pending bool, fault attempt.Fault) pages.ConsoleBadge {
	switch {
	case ok:
		return pages.ConsoleBadge{Text: "ok", Tone: "good"}
	case pending:
		return pages.ConsoleBadge{Text: "going on", Tone: "warn"}
	case fault == "":
		return pages.ConsoleBadge{Text: "ended"}
	}
	return pages.ConsoleBadge{Text: "failed", Tone: "bad"}
}

// maxID limits the length of an ID in lists, in characters.
const maxID = 20

// shortened returns the beginning and the end of an ID.
func shortened(id string) string {
	if len(id) <= maxID {
		return id
	}
	return strings.ToValidUTF8(id[:10], "") + "…" + strings.ToValidUTF8(id[len(id)-6:], "")
}
