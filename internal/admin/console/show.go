package console

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/web"
)

// show shows what an operation that only reads returns: of one thing, or of all.
func (v *view) show(verb admin.Verb) {
	s, query := verb.Spec(), v.r.URL.Query()
	n := nounOf(s.Name)
	p := web.Console{Title: s.Summary, Lead: s.Details}
	subject := subjectOf(verb, query)
	if s.Name == n.begin() {
		p.Title, p.Lead = n.title, n.lead
	} else {
		p.Trail = v.trail(n, nil)
	}
	if missing(verb, query) { // a person has to say of what
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
	all := members(out)
	if s.Name == n.name+" show" {
		p.Title = heading(all, subject)
		p.Badges = v.badges(n, all)
	}
	p.Acts = v.acts(n, subject)
	p.Parts = append(p.Parts, v.parts(n, all)...)
	if s.Name == n.name+" show" {
		p.Parts = append(p.Parts, v.relatedTo(n, all)...)
	}
	v.page(http.StatusOK, n.name, p)
}

// heading names one thing.
func heading(all []member, subject url.Values) string {
	if m, ok := memberOf(all, "name"); ok && scalar(m.value) != "" {
		return scalar(m.value)
	}
	return subjectText(subject)
}

// badges are what is to be seen of a thing at once.
func (v *view) badges(n noun, all []member) (out []web.ConsoleBadge) {
	for _, m := range all {
		if _, ok := n.badges[m.name]; ok {
			out = append(out, v.cell(m, n.badges).Badges...)
		}
	}
	return out
}

// parts are the fields of a value: facts first, then what has facts or rows of its own.
func (v *view) parts(n noun, all []member) (parts []web.ConsolePart) {
	var facts web.ConsoleFacts
	var rest []web.ConsolePart
	for _, m := range all {
		_, badge := n.badges[m.name]
		switch {
		case badge:
		case isTable(m.value):
			if m.value.Len() > 0 {
				t := v.rows(noun{name: n.name, badges: n.badges}, m.value, nil)
				t.Title, t.Name = label(m.name), label(m.name)
				rest = append(rest, t)
			}
		case isGroup(m.value):
			for _, part := range v.parts(n, members(m.value)) {
				if f, ok := part.(web.ConsoleFacts); ok && f.Title == "" {
					f.Title = label(m.name)
					part = f
				}
				rest = append(rest, part)
			}
		default:
			if c := v.cell(m, nil); !c.Blank() {
				facts.Facts = append(facts.Facts, web.ConsoleFact{Name: label(m.name), Value: c})
			}
		}
	}
	if len(facts.Facts) > 0 {
		parts = append(parts, facts)
	}
	return append(parts, rest...)
}

// relatedTo are the lists about one thing.
func (v *view) relatedTo(n noun, all []member) (parts []web.ConsolePart) {
	for _, r := range n.related {
		m, ok := memberOf(all, r.field)
		verb, known := v.verbs[r.list]
		if !ok || !known || !v.may(r.list) {
			continue
		}
		query := url.Values{r.filter: {scalar(m.value)}}
		in, err := input(verb, query)
		if _, filters := memberOf(members(in.Elem()), r.filter); err != nil || !filters {
			continue
		}
		t, err := v.table(verb, in, nounOf(r.list), r.columns)
		if err != nil || len(t.Rows) == 0 {
			continue
		}
		t.Title = r.title
		if t.next != "" {
			t.NextURL = v.url(r.list, query)
		}
		parts = append(parts, t.ConsoleTable)
	}
	return parts
}

// acts are the operations on one thing, or without a subject those that make one.
func (v *view) acts(n noun, subject url.Values) (out []web.ConsoleLink) {
	for _, verb := range admin.All() {
		s := verb.Spec()
		fields := subjects(verb)
		if s.Noun() != n.name || !s.Permits(v.role) || len(fields) > 0 != (len(subject) > 0) {
			continue
		}
		if !s.Changes() && (s.Name == n.begin() || s.Name == n.name+" show" || len(subject) > 0 && len(fields) == 0) {
			continue
		}
		if !covers(subject, fields) {
			continue
		}
		_, verbs, _ := strings.Cut(s.Name, " ")
		out = append(out, web.ConsoleLink{
			Name: label(verbs), URL: v.url(s.Name, subject), Grave: s.Fresh && takes(s),
		})
	}
	return out
}

// covers reports whether a subject has exactly these fields.
func covers(subject url.Values, fields []string) bool {
	for _, f := range fields {
		if !subject.Has(f) {
			return false
		}
	}
	return len(fields) == len(subject)
}

// takes reports whether an operation takes something away.
func takes(s admin.Spec) bool {
	for _, word := range []string{"disable", "delete", "remove", "revoke", "cut", "rotate", "rotate-secret"} {
		if strings.HasSuffix(s.Name, " "+word) {
			return true
		}
	}
	return s.Method == http.MethodDelete
}
