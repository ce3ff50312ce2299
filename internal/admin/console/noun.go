package console

import (
	"cmp"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/pages"
	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// noun holds the settings of the pages of one kind of object.
type noun struct {
	name  string // the first word of its operations
	title string
	menu  string // the group of the menu
	lead  string
	texts map[string]wording // of its operations
	// start is the operation of its first page; "" for its list.
	start string
	// columns lists the columns by field name; nil for the first fields.
	columns []string
	// unlisted is the field that opens objects missing from the list; "" if the list is complete.
	unlisted string
	// heading is the field in the heading of an object's page; "" for its name.
	heading string
	// captions overrides the captions of fields.
	captions map[string]string
	// hide lists fields whose content another field shows.
	hide []string
	// badges lists fields shown beside the heading and in the list, with their tone. A boolean is
	// shown if it is true. Others have a shape.
	badges map[string]string
	// shapes overrides how fields are shown.
	shapes map[string]shape
	empty  pages.ConsoleHint
	// begins lists operations whose object does not exist yet.
	begins []string
	// also lists operations of other nouns that are offered on its first page.
	also []string
	// early lists operations on an object that also delete things created for an object that does
	// not exist yet.
	early []string
	// backs maps operations to the lists that they return to.
	backs map[string]string
	// rows lists the operations on an item of the list.
	rows []string
	// tables describes the lists within an object, by field name.
	tables map[string]table
	// lists describes other lists of the noun, with their own pages.
	lists map[string]table
	// related describes lists about one object, shown on its page.
	related []related
	// live is set if the list changes while a user looks at it.
	live bool
}

// shape changes how a field of an item is shown.
type shape func(v *view, item []member, c *pages.ConsoleCell)

// table describes a list on the page of an object.
type table struct {
	title   string
	noun    string // of its items; "" for none
	columns []string
	// rows lists the operations on an item. as maps their fields to the item's fields.
	rows []string
	as   map[string]string
	acts []string // operations on the list
	one  string   // the operation that shows an item; "" for the show operation of its noun
	// shapes overrides how the fields of items without a noun are shown.
	shapes map[string]shape
	empty  pages.ConsoleHint
}

// related is a list on the page of an object. The field of the object becomes the filter of the
// operation.
type related struct {
	table
	list          string
	field, filter string
}

// begin returns the operation of the first page.
func (n noun) begin() string { return cmp.Or(n.start, n.name+" list") }

// caption returns the readable name of a field.
func (n noun) caption(field string) string { return cmp.Or(n.captions[field], caption(field)) }

// nounOf returns the noun of an operation. Without an entry in nouns, it has only a name.
func nounOf(name string) noun {
	first, _, _ := strings.Cut(name, " ")
	for _, n := range nouns {
		if n.name == first {
			return n
		}
	}
	return noun{name: first, title: caption(first)}
}

// fits reports for each operation whether it would change an object in its current state.
var fits = map[string]func(v *view, thing []member) bool{
	"user disable":         lacks("disabled"),
	"user enable":          has("disabled"),
	"grant pause":          lacks("paused_at"),
	"grant resume":         has("paused_at"),
	"trust disable":        lacks("disabled_at"),
	"trust enable":         has("disabled_at"),
	"trust remove":         is("from", "store"),
	"user ways remove":     has("id"),
	"client rotate-secret": is("source", "static"),
	"resource accept":      has("offered_digest"),
	"resource set":         is("from", "store"),
	"resource remove":      is("from", "store"),
	"application split":    has("counts_as"),
	"proposal accept":      is("state", string(storage.ProposalOpen)),
	"proposal decline":     is("state", string(storage.ProposalOpen)),
}

func has(field string) func(*view, []member) bool {
	return func(_ *view, thing []member) bool {
		m, ok := memberOf(thing, field)
		return ok && !m.value.IsZero()
	}
}

func lacks(field string) func(*view, []member) bool {
	return func(v *view, thing []member) bool { return !has(field)(v, thing) }
}

func is(field, value string) func(*view, []member) bool {
	return func(_ *view, thing []member) bool {
		m, ok := memberOf(thing, field)
		return ok && scalar(m.value) == value
	}
}

// fit reports whether an operation applies to an object in its current state.
func (v *view) fit(name string, thing []member) bool {
	f, ok := fits[name]
	return !ok || f(v, thing)
}
