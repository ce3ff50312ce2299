package console

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/storage"
	"github.com/mcp-authd/mcp-authd/web"
)

// mayAccept reports whether a proposal is open, of another person, and of an operation that the person at
// the browser may use.
func mayAccept(v *view, p []member) bool {
	return isOpen(p) && !v.proposed(p) && v.may(text(p, "operation"))
}

// mayDecline reports whether a proposal is open, and the person at the browser made it or may use its
// operation.
func mayDecline(v *view, p []member) bool {
	return isOpen(p) && (v.proposed(p) || v.may(text(p, "operation")))
}

func isOpen(p []member) bool { return text(p, "state") == string(storage.ProposalOpen) }

// proposed reports whether the person at the browser made a proposal.
func (v *view) proposed(p []member) bool { return partyOf(p, "by").User == v.visit.User.Name }

// partyOf is a field that says who proposed or decided something.
func partyOf(p []member, field string) admin.Party {
	m, _ := memberOf(p, field)
	party, _ := m.value.Interface().(admin.Party)
	return party
}

// proposer is who proposed something: a person, or a program by its client.
func proposer(v *view, p []member, c *web.ConsoleCell) {
	by := partyOf(p, "by")
	if c.Text = by.User; c.Text != "" {
		personLink(v, p, c)
		return
	}
	c.Text, c.Code = by.Client, true
	v.link("client", c)
	c.Text = shortened(c.Text)
}

// eachInput shows the fields of the input of a proposal, one below the other.
func eachInput(_ *view, p []member, c *web.ConsoleCell) {
	input := inputOf(p)
	c.Text, c.Code = "", true
	for _, name := range slices.Sorted(maps.Keys(input)) {
		c.List = append(c.List, name+": "+input.Get(name))
	}
}

// firstInput shows the first fields of the input of a proposal, each of them shortened.
func firstInput(v *view, p []member, c *web.ConsoleCell) {
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

// inputOf is the input of a proposal, without fields that say nothing.
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

// proposals says how many proposals the person at the browser may accept; nil where there are none.
func (v *view) proposals() []web.ConsoleFinding {
	if !v.may("proposal accept") {
		return nil
	}
	found, err := admin.ProposalList.Do(v.r.Context(), v.as, admin.Paging{Limit: maxCounted})
	waiting := 0
	for i := range found.Items {
		if err == nil && mayAccept(v, members(valueOf(found.Items).Index(i))) {
			waiting++
		}
	}
	if waiting == 0 {
		return nil
	}
	verb := map[bool]string{true: " waits", false: " wait"}[waiting == 1]
	return []web.ConsoleFinding{{
		Tone: "warn", Mark: "proposals", URL: v.url("proposal list", nil),
		Name: counted(waiting, "proposal", "proposals") + verb + " for you to accept or decline",
	}}
}

// waits says that nothing has changed yet, because an operation was proposed.
func (v *view) waits(p admin.Proposal) {
	page := web.Console{
		Title: "Proposed", Lead: "Nothing has changed yet. Another administrator has to accept this within 24 hours.",
	}
	if subject := (url.Values{"id": {p.ID}}); v.may("proposal show") {
		page.Acts = []web.ConsoleLink{{Name: "Show proposal " + shortened(p.ID), URL: v.url("proposal show", subject)}}
	}
	v.page(http.StatusAccepted, "proposal", page)
}

// goesByProposal is what a proposal takes away when it is accepted.
func (v *view) goesByProposal(id string) []string {
	p, err := admin.ProposalShow.Do(v.r.Context(), v.as, admin.ProposalID{ID: id})
	if err != nil {
		return nil
	}
	return v.goes(p.Operation, inputOf(members(valueOf([]admin.Proposal{p}).Index(0))))
}
