package console

import (
	"net/http"
	"net/url"
	"reflect"
	"slices"

	"github.com/mcp-authd/mcp-authd/internal/admin"
	"github.com/mcp-authd/mcp-authd/web"
)

// pageSize is how many rows a list has.
const pageSize = 50

// listed reports whether an operation returns a page of a list.
func listed(verb admin.Verb) bool {
	f, ok := verb.Output().FieldByName("Items")
	return ok && f.Type.Kind() == reflect.Slice
}

// list shows a list, with what searches it above.
func (v *view) list(verb admin.Verb) {
	s, query := verb.Spec(), v.r.URL.Query()
	n := nounOf(s.Name)
	p := web.Console{Title: n.title, Lead: n.lead, Acts: v.beginnings(n)}
	if s.Name != n.begin() {
		p.Title, p.Lead, p.Trail = s.Summary, s.Details, v.trail(n, nil)
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
	table, err := v.table(verb, in, n, n.columns)
	if err != nil {
		v.failed(err)
		return
	}
	if searched(search) && len(table.Rows) == 0 {
		table.Empty = web.ConsoleHint{Text: "Nothing fits. Search for less, or for something else."}
	}
	table.turn(v, s.Name, query)
	p.Parts = append(p.Parts, table.ConsoleTable)
	v.page(http.StatusOK, n.name, p)
}

// table is a list as an operation returns it.
type table struct {
	web.ConsoleTable
	next string
}

func (v *view) table(verb admin.Verb, in reflect.Value, n noun, columns []string) (t table, err error) {
	setLimit(in, pageSize)
	out, err := v.call(verb, in)
	if err != nil {
		return t, err
	}
	t.ConsoleTable = v.rows(nounOf(verb.Spec().Name), out.FieldByName("Items"), columns)
	t.Name, t.Empty = n.title, n.empty
	if next := out.FieldByName("Next"); next.IsValid() {
		t.next = next.String()
	}
	return t, nil
}

// turn adds the links to other pages of the list.
func (t *table) turn(v *view, name string, query url.Values) {
	query = without(query, "done")
	if query.Get("after") != "" {
		t.FirstURL = v.url(name, without(query, "after"))
	}
	if t.next != "" {
		query.Set("after", t.next)
		t.NextURL = v.url(name, query)
	}
}

// without is a query without a field.
func without(query url.Values, field string) url.Values {
	out := url.Values{}
	for k, values := range query {
		if k != field {
			out[k] = slices.Clone(values)
		}
	}
	return out
}

// rows are the items of a list in columns. A column that all rows leave empty is left out.
func (v *view) rows(n noun, items reflect.Value, columns []string) (t web.ConsoleTable) {
	sample := members(reflect.New(items.Type().Elem()).Elem())
	var shown []string
	for _, name := range columnsOf(sample, columns) {
		for i := range items.Len() {
			m, _ := memberOf(members(items.Index(i)), name)
			if !v.cell(m, n.badges).Blank() {
				shown = append(shown, name)
				break
			}
		}
	}
	for _, name := range shown {
		t.Columns = append(t.Columns, label(name))
	}
	for i := range items.Len() {
		all := members(items.Index(i))
		var row []web.ConsoleCell
		for _, name := range shown {
			m, _ := memberOf(all, name)
			row = append(row, v.cell(m, n.badges))
		}
		if len(row) > 0 {
			if to := v.oneURL(n, all); to != "" {
				row[0].URL = to
			}
			t.Rows = append(t.Rows, row)
		}
	}
	return t
}

// columnsOf are the columns of a list that are there: those that are wanted, or the first ones that are
// simple.
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

// oneURL is the page of an item; "" where there is none.
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

// beginnings are the operations of a noun that are about no thing that is there yet.
func (v *view) beginnings(n noun) []web.ConsoleLink {
	return v.acts(n, nil)
}

func setLimit(in reflect.Value, limit int) {
	if f := in.Elem().FieldByName("Limit"); f.IsValid() && f.CanInt() {
		f.SetInt(int64(limit))
	}
}

// search is the form above a list; nil where nothing can be searched for.
func (v *view) search(verb admin.Verb, query url.Values) *web.ConsoleForm {
	f := web.ConsoleForm{Action: v.url(verb.Spec().Name, nil), Button: "Search", Search: true}
	for _, m := range members(reflect.New(verb.Input()).Elem()) {
		if m.name != "after" && m.name != "limit" {
			f.Fields = append(f.Fields, fieldOf(m, query))
		}
	}
	if len(f.Fields) == 0 {
		return nil
	}
	return &f
}

func searched(f *web.ConsoleForm) bool {
	return f != nil && slices.ContainsFunc(f.Fields, func(x web.ConsoleField) bool {
		return x.Value != "" || x.Checked
	})
}
