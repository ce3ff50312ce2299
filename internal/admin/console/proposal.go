package console

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/pages"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// party shows who proposed or decided something. A user is shown with an ID that links to the
// account and with the application; a program by name.
func (v *view) party(p admin.Party, c *pages.ConsoleCell) {
	if p.UserID == "" {
		c.Text = p.Client
		v.link("client", c)
		c.Text, c.Code, c.Said = cmp.Or(p.ClientName, shortened(p.Client)), p.ClientName == "", p.ClientName != ""
		return
	}
	c.Text = p.UserID
	v.link("user", c)
	c.Text, c.Note = cmp.Or(p.User, p.UserID), p.UserID
	if p.Client != "" {
		c.Note += " by " + named(p.ClientName, p.Client)
	}
}

// proposedAbout links the object of a proposal to its page.
func proposedAbout(v *view, p []member, c *pages.ConsoleCell) {
	verb, ok := v.verbs[text(p, "operation")]
	if !ok || c.Text == "" {
		return
	}
	one := verb.Spec().Noun() + " show"
	if !v.may(one) {
		return
	}
	if subject := subjectOf(v.verbs[one], inputOf(p)); covers(subject, subjects(v.verbs[one])) {
		c.URL = v.url(one, subject)
	}
}

// eachInput shows the input fields of a proposal, one per line. It omits the field that names the
// object if another field of the page shows it.
func eachInput(v *view, p []member, c *pages.ConsoleCell) {
	input, about := inputOf(p), ""
	if verb, ok := v.verbs[text(p, "operation")]; ok && text(p, "about") != "" {
		if fields := subjects(verb); len(fields) > 0 {
			about = fields[0]
		}
	}
	c.Text, c.Code = "", true
	for _, name := range slices.Sorted(maps.Keys(input)) {
		if name != about {
			c.List = append(c.List, name+": "+input.Get(name))
		}
	}
}

// firstInput shows the first input fields of a proposal, each shortened.
func firstInput(v *view, p []member, c *pages.ConsoleCell) {
	eachInput(v, p, c)
	for i, line := range c.List {
		if i == maxLines {
			c.List = append(c.List[:i], "…")
			break
		}
		if len(line) > maxSaid {
			c.List[i] = shortened(line)
		}
	}
}

// inputOf returns the input of a proposal without empty fields.
func inputOf(p []member) url.Values {
	m, _ := memberOf(p, "input")
	raw, _ := m.value.Interface().(json.RawMessage)
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return nil
	}
	out := url.Values{}
	for name, field := range fields {
		var words string
		if json.Unmarshal(field, &words) != nil {
			words = string(field)
		}
		if words != "" {
			out.Set(name, words)
		}
	}
	return out
}

// proposals reports how many proposals the user may accept, or nil for zero.
func (v *view) proposals() []pages.ConsoleFinding {
	if !v.may("proposal accept") {
		return nil
	}
	found, err := admin.ProposalList.Do(v.r.Context(), v.as, admin.Paging{Limit: maxCounted})
	waiting := 0
	for i := range found.Items {
		p := found.Items[i]
		open := p.State == string(storage.ProposalOpen)
		if err == nil && open && v.allowed("proposal accept", url.Values{"id": {p.ID}}) {
			waiting++
		}
	}
	if waiting == 0 {
		return nil
	}
	return []pages.ConsoleFinding{{
		Tone: "warn", Mark: "proposals", URL: v.url("proposal list", nil),
		Name: counted(waiting, "proposal waits", "proposals wait") + " for you to accept or decline",
	}}
}

// waits says that an operation was proposed and has changed nothing yet.
func (v *view) waits(p admin.Proposal) {
	page := pages.Console{
		Title: "Proposed", Lead: "Nothing has changed yet. Another administrator has to accept this within 24 hours.",
	}
	v.seeProposal(&page, p.ID)
	v.page(http.StatusAccepted, "proposal", page)
}

// goesByProposal lists the access that a proposal takes away if it is accepted.
func (v *view) goesByProposal(id string) []string {
	p, err := admin.ProposalShow.Do(v.r.Context(), v.as, admin.ProposalID{ID: id})
	if err != nil {
		return nil
	}
	return v.goes(p.Operation, inputOf(members(valueOf([]admin.Proposal{p}).Index(0))))
}
