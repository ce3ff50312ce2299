package console

import (
	"cmp"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/internal/label"
	"github.com/mcp-authd/mcp-authd/internal/pages"
)

// pageSize is the number of rows of a list.
const pageSize = 50

// listed reports whether an operation returns a page of a list.
func listed(verb admin.Verb) bool {
	f, ok := verb.Output().FieldByName("Items")
	return ok && f.Type.Kind() == reflect.Slice
}

// list shows a list with its search form.
func (v *view) list(verb admin.Verb) {
	s, query := verb.Spec(), v.r.URL.Query()
	n := nounOf(s.Name)
	p := pages.Console{Title: n.title, Lead: n.lead, Acts: v.acts(n, nil, nil)}
	if s.Name != n.begin() {
		p.Title, p.Lead, p.Trail = wordingOf(s.Name).title, wordingOf(s.Name).lead, v.trail(n, subjectOf(verb, query))
		p.Acts = nil
	}
	search := v.search(verb, query)
	if search != nil {
		p.Parts = append(p.Parts, *search)
	}
	in, err := input(verb, query)
	if err != nil {
		p.Problem = err.Error()
		v.page(http.StatusBadRequest, n.name, p)
		return
	}
	list, err := v.listing(verb, in, v.tableOf(s.Name), pageSize, subjectOf(verb, query))
	if err != nil {
		v.failed(err)
		return
	}
	if searched(search) && len(list.Rows) == 0 {
		list.Empty = pages.ConsoleHint{Text: "Nothing matches. Search for less, or for something else."}
		if list.next != "" {
			list.Empty.Text = "Nothing matches so far. The next page looks further."
		}
		list.Empty.Link = v.openNamed(n, s.Name, query)
	}
	list.turn(v, s.Name, query)
	p.Parts = append(p.Parts, list.ConsoleTable)
	p.Live = n.live
	v.page(http.StatusOK, n.name, p)
}

// tableOf returns the table for an operation whose list has its own page.
func (v *view) tableOf(name string) table {
	n := nounOf(name)
	if name == n.begin() {
		return table{noun: n.name, columns: n.columns, rows: n.rows, empty: n.empty}
	}
	t := n.lists[name]
	t.title = ""
	return t
}

// listing is a list with the key of its next page.
type listing struct {
	pages.ConsoleTable
	next string
}

// listing runs an operation that returns a list of up to limit items, and returns it as a table
// about an object.
func (v *view) listing(verb admin.Verb, in reflect.Value, t table, limit int, of url.Values) (l listing, err error) {
	setLimit(in, limit)
	out, err := v.call(verb, in)
	if err != nil {
		return l, err
	}
	l.ConsoleTable = v.table(t, out.FieldByName("Items"), of)
	if next := out.FieldByName("Next"); next.IsValid() {
		l.next = next.String()
	}
	if l.next != "" && len(l.Rows) == 0 {
		l.Empty = pages.ConsoleHint{Text: "None so far. The next page looks further."}
	}
	return l, nil
}

// turn adds the links to other pages of the list.
func (t *listing) turn(v *view, name string, query url.Values) {
	query = without(query, "done")
	if query.Get("after") != "" {
		t.FirstURL = v.url(name, without(query, "after"))
	}
	if t.next != "" {
		query.Set("after", t.next)
		t.NextURL = v.url(name, query)
	}
}

// without returns a query without one field.
func without(query url.Values, field string) url.Values {
	out := url.Values{}
	for k, values := range query {
		if k != field {
			out[k] = slices.Clone(values)
		}
	}
	return out
}

// table returns the items of a list in columns. It omits columns that are empty in every row.
func (v *view) table(t table, items reflect.Value, of url.Values) pages.ConsoleTable {
	n := noun{name: t.noun, shapes: t.shapes}
	if t.noun != "" {
		n = nounOf(t.noun)
	}
	out := pages.ConsoleTable{Title: t.title, Name: cmp.Or(t.title, n.title, "List"), Empty: t.empty}
	var rows [][]member
	for i := range items.Len() {
		rows = append(rows, members(items.Index(i)))
	}
	shown := v.columnsShown(n, rows, columnsOf(members(reflect.New(items.Type().Elem()).Elem()), t.columns))
	for _, name := range shown {
		out.Columns = append(out.Columns, n.caption(name))
	}
	for _, item := range rows {
		row := v.row(n, item, shown)
		if to := v.itemURL(t, item, of); to != "" && len(row) > 0 {
			row[0].URL = to
		}
		acts := v.actsOn(t.rows, item, t.as, of)
		out.Acting = out.Acting || len(acts) > 0
		out.Rows = append(out.Rows, append(row, pages.ConsoleCell{Acts: acts}))
	}
	if !out.Acting {
		for i, row := range out.Rows {
			out.Rows[i] = row[:len(row)-1]
		}
	}
	return out
}

// columnsShown returns the columns that are not empty in every row.
func (v *view) columnsShown(n noun, rows [][]member, columns []string) (shown []string) {
	for _, name := range columns {
		if slices.ContainsFunc(rows, func(item []member) bool {
			m, _ := memberOf(item, name)
			return !v.cell(n, item, m).Blank()
		}) {
			shown = append(shown, name)
		}
	}
	return shown
}

// row returns an item in columns. The first column links to its page.
func (v *view) row(n noun, item []member, columns []string) (row []pages.ConsoleCell) {
	for i, name := range columns {
		m, _ := memberOf(item, name)
		c := v.cell(n, item, m)
		if !c.At.IsZero() {
			c.Text = ago(c.At, v.cfg.Now())
		}
		if c.Code && c.URL == "" && strings.HasSuffix(name, "id") {
			c.Text = shortened(c.Text)
		}
		if c.Said {
			c.Text = label.Claim(c.Text, maxSaid)
		}
		if to := v.oneURL(n, item); i == 0 && to != "" {
			c.URL = to
		}
		row = append(row, c)
	}
	return row
}

// same maps fields of operations to the field names of the objects.
var same = map[string]string{"receiver": "id"}

// maxSaid limits names that clients chose for themselves in lists, in characters.
const maxSaid = 48

// actsOn returns those of the named operations that apply to an item and that the role permits.
// Their object is found in the item, under the same or another name, or in the object of the list.
func (v *view) actsOn(names []string, item []member, as map[string]string, of url.Values) (out []pages.ConsoleLink) {
	for _, name := range names {
		if !v.may(name) || !v.fit(name, item) {
			continue
		}
		subject := url.Values{}
		for _, f := range subjects(v.verbs[name]) {
			if value := cmp.Or(text(item, as[f]), of.Get(f), text(item, f), text(item, same[f])); value != "" {
				subject.Set(f, value)
			}
		}
		if covers(subject, subjects(v.verbs[name])) && v.allowed(name, subject) {
			s := v.verbs[name].Spec()
			out = append(out, pages.ConsoleLink{Name: actName(name), URL: v.url(name, subject), Grave: s.Takes})
		}
	}
	return out
}

// columnsOf returns the wanted columns that exist, or else the first simple ones.
func columnsOf(sample []member, wanted []string) (out []string) {
	for _, name := range wanted {
		if _, ok := memberOf(sample, name); ok {
			out = append(out, name)
		}
	}
	if len(out) > 0 {
		return out
	}
	for _, m := range sample {
		if !isTable(m.value) && !isGroup(m.value) && len(out) < 6 {
			out = append(out, m.name)
		}
	}
	return out
}

// itemURL returns the page of an item if the list has an operation for it, or "".
func (v *view) itemURL(t table, item []member, of url.Values) string {
	if t.one == "" || !v.may(t.one) {
		return ""
	}
	subject := url.Values{}
	for _, f := range subjects(v.verbs[t.one]) {
		subject.Set(f, cmp.Or(text(item, f), of.Get(f)))
	}
	return v.url(t.one, subject)
}

// oneURL returns the page of an item, or "".
func (v *view) oneURL(n noun, item []member) string {
	name := n.name + " show"
	if !v.may(name) {
		return ""
	}
	subject := url.Values{}
	for _, field := range subjects(v.verbs[name]) {
		m, ok := memberOf(item, field)
		if !ok {
			return ""
		}
		subject.Set(field, scalar(m.value))
	}
	if len(subject) == 0 {
		return ""
	}
	return v.url(name, subject)
}

func setLimit(in reflect.Value, limit int) {
	if f := in.Elem().FieldByName("Limit"); f.IsValid() && f.CanInt() {
		f.SetInt(int64(limit))
	}
}

// search returns the form above a list, or nil if the list has no search fields.
func (v *view) search(verb admin.Verb, query url.Values) *pages.ConsoleForm {
	f := pages.ConsoleForm{Action: v.url(verb.Spec().Name, nil), Button: "Search", Search: true}
	for _, m := range members(reflect.New(verb.Input()).Elem()) {
		if m.name != "after" && m.name != "limit" {
			f.Fields = append(f.Fields, filterOf(m, query))
		}
	}
	if len(f.Fields) == 0 {
		return nil
	}
	return &f
}

// openNamed returns a link to the searched object if the list is not complete, or nil.
func (v *view) openNamed(n noun, list string, query url.Values) *pages.ConsoleLink {
	one, name := n.name+" show", strings.TrimSpace(query.Get("match"))
	if n.unlisted == "" || list != n.begin() || name == "" || !v.may(one) {
		return nil
	}
	return &pages.ConsoleLink{Name: "Open " + shortened(name), URL: v.url(one, url.Values{n.unlisted: {name}})}
}

func searched(f *pages.ConsoleForm) bool {
	return f != nil && slices.ContainsFunc(f.Fields, func(x pages.ConsoleField) bool {
		return x.Value != "" || x.Checked
	})
}
