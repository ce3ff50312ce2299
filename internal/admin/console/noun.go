package console

import (
	"cmp"
	"strings"

	"github.com/mcp-authd/mcp-authd/storage"
	"github.com/mcp-authd/mcp-authd/web"
)

// noun is what is particular about the pages of what an operator works with.
type noun struct {
	name  string // the first word of its operations
	title string
	menu  string // the group of the menu in which it is
	lead  string
	// start is the operation with which it begins; "": its list.
	start string
	// columns of the list, by the names of the fields; nil: the first of them.
	columns []string
	// unlisted is the field by which one is opened that is not in the list; "": all of them are.
	unlisted string
	// heading is the field that heads the page of one; "": its name.
	heading string
	// captions are names of fields that are called otherwise elsewhere.
	captions map[string]string
	// hide are fields of one thing that say what another one says.
	hide []string
	// badges are fields that are shown beside the heading and in the list: those that are true or false, when
	// they are true, with this tone; others as their shape has them.
	badges map[string]string
	// shapes are fields that are shown in a way of their own.
	shapes map[string]shape
	empty  web.ConsoleHint
	// begins are operations that name what is not there yet.
	begins []string
	// also are operations of other nouns that are done from its first page.
	also []string
	// early are operations on a thing that also end what was made for one that is not there yet.
	early []string
	// backs are lists to which an operation leads back.
	backs map[string]string
	// rows are what can be done with an item of the list.
	rows []string
	// tables are the lists that one thing has itself, by the names of their fields.
	tables map[string]table
	// lists are other lists of the noun, with pages of their own.
	lists map[string]table
	// related are lists about one thing, on its page.
	related []related
	// live: what the list shows changes while a person looks at it.
	live bool
}

// shape changes how a field of an item is shown.
type shape func(v *view, item []member, c *web.ConsoleCell)

// table is what is particular about a list on the page of one thing.
type table struct {
	title   string
	noun    string // of its items; "": of none
	columns []string
	// rows are what can be done with an item, as are the fields of those operations that an item has
	// by another name.
	rows []string
	as   map[string]string
	acts []string // what can be done about the list
	one  string   // the operation that shows an item; "": that of its noun
	// shapes are those of the items, where they have no noun.
	shapes map[string]shape
	empty  web.ConsoleHint
}

// related is a list on the page of one thing: of an operation, with the field of the thing as its field.
type related struct {
	table
	list          string
	field, filter string
}

// begin is the operation with which a noun begins.
func (n noun) begin() string { return cmp.Or(n.start, n.name+" list") }

// caption is a name of a field of one as people read it.
func (n noun) caption(field string) string { return cmp.Or(n.captions[field], caption(field)) }

// nounOf is the noun of an operation; one of its name alone where nothing is particular about it.
func nounOf(name string) noun {
	first, _, _ := strings.Cut(name, " ")
	for _, n := range nouns {
		if n.name == first {
			return n
		}
	}
	return noun{name: first, title: caption(first)}
}

// actNames are what buttons say of operations whose own words would be unclear.
var actNames = map[string]string{
	"client policy":       "Which are accepted",
	"user passwd":         "Set password",
	"user set-mail":       "Set mail address",
	"user set-role":       "Set role",
	"user links":          "One-time links",
	"user links withdraw": "Withdraw links",
	"user ways remove":    "Remove",
	"user sessions end":   "Sign out",
	"audit prove":         "Prove it",
	"mail test":           "Send test letter",
	"grant revoke-many":   "Revoke many",
	"grant finish":        "Finish a revocation",
}

// actName is an operation as a button says it.
func actName(name string) string {
	if s, ok := actNames[name]; ok {
		return s
	}
	_, verbs, _ := strings.Cut(name, " ")
	return caption(verbs)
}

// fits say of operations whether they would change something, and not be refused, as a thing is.
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

// fit reports whether an operation makes sense for a thing as it is.
func (v *view) fit(name string, thing []member) bool {
	f, ok := fits[name]
	return !ok || f(v, thing)
}
