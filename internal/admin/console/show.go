package console

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/label"
	"github.com/mcp-authd/mcp-authd/internal/pages"
)

// show shows the output of an operation that only reads.
func (v *view) show(verb admin.Verb) {
	s, query := verb.Spec(), v.r.URL.Query()
	n := nounOf(s.Name)
	p := pages.Console{Title: wordingOf(s.Name).title, Lead: wordingOf(s.Name).lead}
	subject := subjectOf(verb, query)
	if s.Name == n.begin() {
		p.Title, p.Lead = n.title, n.lead
	} else {
		p.Trail = v.trail(n, nil)
	}
	if missing(verb, query) { // the user must name an object
		p.Parts = append(p.Parts, v.question(verb, query))
		v.page(http.StatusOK, n.name, p)
		return
	}
	in, err := input(verb, query)
	if err != nil {
		p.Problem = err.Error()
		p.Parts = append(p.Parts, v.question(verb, query))
		v.page(http.StatusBadRequest, n.name, p)
		return
	}
	out, err := v.call(verb, in)
	if err != nil {
		v.failed(err)
		return
	}
	all, one := members(out), s.Name == n.name+" show" && len(subject) > 0
	if one || s.Name == n.begin() {
		p.Acts = v.acts(n, subject, all)
	}
	if one {
		p.Title, p.Lead = v.heading(n, all, subject), ""
		p.Badges = v.badges(n, all)
	}
	if !v.screen(out.Interface(), &p) {
		p.Parts = append(p.Parts, v.parts(n, all, subject)...)
	}
	if one {
		p.Parts = append(p.Parts, v.relatedTo(n, all, subject)...)
	}
	v.page(http.StatusOK, n.name, p)
}

// screen renders outputs that have their own kind of page, and reports whether it did.
func (v *view) screen(out any, p *pages.Console) bool {
	switch out := out.(type) {
	case admin.AttemptDetails:
		v.attempt(out, p)
	case admin.ApplicationDetails:
		v.merged(out, p)
	case admin.ClientDetails:
		v.client(out, p)
	case admin.AuditEntry:
		v.entry(out, p)
	case admin.AuditProof:
		v.proof(out, p)
	case admin.AuditCheckpoint:
		v.checkpoint(out, p)
	case admin.Health:
		v.health(out, p)
	case admin.ProviderDetails:
		v.provider(out, p)
	case admin.ToolDifference:
		v.tool(out, p)
	case admin.TokenInspection:
		v.token(out, p)
	default:
		return false
	}
	return true
}

// heading names an object. A name that the object gave itself is in quotation marks.
func (v *view) heading(n noun, all []member, subject url.Values) string {
	m, ok := memberOf(all, cmp.Or(n.heading, "name"))
	if !ok {
		return shortened(subjectText(subject))
	}
	c := v.cell(n, all, m)
	if c.Said {
		return "“" + label.Claim(c.Text, maxHeading) + "”"
	}
	return cmp.Or(c.Text, shortened(subjectText(subject)))
}

// maxHeading limits a name that an object gave itself, in characters.
const maxHeading = 80

// badges returns the badges beside the heading of an object.
func (v *view) badges(n noun, all []member) (out []pages.ConsoleBadge) {
	for _, m := range all {
		if _, ok := n.badges[m.name]; ok {
			out = append(out, v.cell(n, all, m).Badges...)
		}
	}
	return out
}

// parts returns the fields of a value: simple facts first, then groups and tables.
func (v *view) parts(n noun, all []member, of url.Values) (parts []pages.ConsolePart) {
	var facts pages.ConsoleFacts
	var rest []pages.ConsolePart
	for _, m := range all {
		_, badge := n.badges[m.name]
		switch {
		case badge, slices.Contains(n.hide, m.name):
		case isTable(m.value):
			rest = append(rest, v.tableIn(n, m, of)...)
		case isGroup(m.value):
			for _, part := range v.parts(n, members(m.value), of) {
				if f, ok := part.(pages.ConsoleFacts); ok && f.Title == "" {
					f.Title = caption(m.name)
					part = f
				}
				rest = append(rest, part)
			}
		default:
			if c := v.cell(noun{}, all, m); !c.Blank() {
				facts.Facts = append(facts.Facts, pages.ConsoleFact{Name: caption(m.name), Value: c})
			}
		}
	}
	if len(facts.Facts) > 0 {
		parts = append(parts, facts)
	}
	return append(parts, rest...)
}

// tableIn returns a list within an object. It omits an empty list unless the list has a hint.
func (v *view) tableIn(n noun, m member, of url.Values) []pages.ConsolePart {
	t, ok := n.tables[m.name]
	if !ok {
		t.title = caption(m.name)
	}
	if m.value.Len() == 0 && t.empty.Text == "" {
		return nil
	}
	return []pages.ConsolePart{v.table(t, m.value, of)}
}

// few is the number of rows of a related list.
const few = 10

// relatedTo returns the lists about an object.
func (v *view) relatedTo(n noun, all []member, of url.Values) (parts []pages.ConsolePart) {
	for _, r := range n.related {
		verb, known := v.verbs[r.list]
		value := text(all, r.field)
		if !known || !v.may(r.list) || value == "" {
			continue
		}
		query := url.Values{r.filter: {value}}
		in, err := input(verb, query)
		if _, filters := memberOf(members(in.Elem()), r.filter); err != nil || !filters {
			continue
		}
		list, err := v.listing(verb, in, r.table, few, of)
		if err != nil {
			list.Title, list.Empty = r.title, pages.ConsoleHint{Text: "This could not be read."}
		}
		if len(list.Rows) == 0 && list.Empty.Text == "" {
			continue
		}
		if list.next != "" || len(list.Rows) == few {
			list.NextURL, list.NextName = v.url(r.list, query), "All of them"
		}
		list.Acts = v.actsOn(r.acts, all, nil, of)
		parts = append(parts, list.ConsoleTable)
	}
	return parts
}

// acts returns the operations on an object, or the operations that create one if subject is empty.
// Operations that take something away come last.
func (v *view) acts(n noun, subject url.Values, thing []member) (out []pages.ConsoleLink) {
	for _, verb := range admin.All() {
		s := verb.Spec()
		also := len(subject) == 0 && slices.Contains(n.also, s.Name)
		if s.Noun() != n.name && !also || !v.may(s.Name) || !v.fit(s.Name, thing) || v.elsewhere(n, s) {
			continue
		}
		needs := subjects(verb)
		if slices.Contains(n.begins, s.Name) {
			needs = nil
		}
		if covers(subject, needs) && v.allowed(s.Name, subject) {
			out = append(out, pages.ConsoleLink{Name: actName(s.Name), URL: v.url(s.Name, subject), Grave: s.Takes})
		}
	}
	slices.SortStableFunc(out, func(a, b pages.ConsoleLink) int {
		return cmp.Compare(weight(a.Grave), weight(b.Grave))
	})
	return out
}

func weight(grave bool) int {
	if grave {
		return 1
	}
	return 0
}

// elsewhere reports whether no button leads to an operation, because it has a page or a part of
// one.
func (v *view) elsewhere(n noun, s admin.Spec) bool {
	if s.Changes() {
		return slices.ContainsFunc(n.related, func(r related) bool { return slices.Contains(r.acts, s.Name) })
	}
	for _, suffix := range []string{" list", " show", " count", " explain", " bundle"} {
		if s.Name == n.name+suffix {
			return true
		}
	}
	return len(subjects(v.verbs[s.Name])) > 0 && slices.ContainsFunc(n.related, func(r related) bool {
		return r.list == s.Name
	})
}

// covers reports whether subject has exactly these fields.
func covers(subject url.Values, fields []string) bool {
	for _, f := range fields {
		if !subject.Has(f) {
			return false
		}
	}
	return len(fields) == len(subject)
}
