package web

import (
	"net/http"
	"time"
)

// Console is the view of a page of the console, for people with a role. It is in English, as the command
// line is whose words it has.
type Console struct {
	Rooms      []ConsoleRoom
	HomeURL    string // the overview
	Overview   bool   // which is the page
	Username   string
	Role       string
	AccountURL string
	SignOut    AccountForm
	Trail      []ConsoleLink // the pages above this one
	Title      string
	Badges     []ConsoleBadge
	Lead       string
	Done       string // what the last act came to
	Problem    string // why it came to nothing
	Acts       []ConsoleLink
	Parts      []ConsolePart
}

// ConsoleRoom is a group of pages in the menu.
type ConsoleRoom struct {
	Name  string
	Links []ConsoleLink
}

// ConsoleLink leads to another page of the console.
type ConsoleLink struct {
	Name, URL string
	Current   bool // the page is there
	Grave     bool // it leads to what takes something away
}

// ConsoleBadge is a word that is to be seen at once.
type ConsoleBadge struct {
	Text string
	Tone string // "good", "bad", "warn", or "" for none of these
}

// ConsolePart is a part of a page: one of the types that follow.
type ConsolePart interface {
	// Kind names the template of the part.
	Kind() string
}

// ConsoleFacts are what is known of one thing.
type ConsoleFacts struct {
	Title string
	Facts []ConsoleFact
}

// ConsoleFact is a name with what stands for it.
type ConsoleFact struct {
	Name  string
	Value ConsoleCell
}

// ConsoleCell is a value as it is shown. The zero value is a dash.
type ConsoleCell struct {
	Text   string
	Code   bool // Text is an id, an address, or what is typed
	URL    string
	At     time.Time
	Badges []ConsoleBadge
	List   []string // one below the other
}

// Blank reports whether there is nothing to show.
func (c ConsoleCell) Blank() bool {
	return c.Text == "" && c.At.IsZero() && len(c.Badges) == 0 && len(c.List) == 0
}

// ConsoleTable is a list. The first column names the row.
type ConsoleTable struct {
	Title   string // "": the page's
	Name    string // what it is a list of, for those who do not see it
	Columns []string
	Rows    [][]ConsoleCell
	Empty   ConsoleHint // where there is no row
	NextURL string
	// FirstURL leads back to the first page; "": this is it.
	FirstURL string
}

// ConsoleHint says what to do next, and the command that does it.
type ConsoleHint struct{ Text, Command string }

// ConsoleForm is what a person fills in. One that only asks is sent by GET.
type ConsoleForm struct {
	Title, Lead string
	Action      string
	Step        string // "": it only asks
	Fields      []ConsoleField
	Button      string
	Grave       bool
	BackURL     string
	// Search is in one line, above what it finds.
	Search bool
}

// ConsoleField is a field of a form.
type ConsoleField struct {
	Name, Label, Hint string
	Type              string // "text", "number", "date", "password", "check", "select", or "area"
	Value             string
	Options           []string // of select; the first is chosen when Value is none of them
	Checked, Required bool
}

// ID names the field in the page.
func (f ConsoleField) ID() string { return "in-" + f.Name }

// ConsoleSecret is shown once.
type ConsoleSecret struct {
	Title, Text string
	Secrets     []ConsoleFact
}

// ConsoleCards lead to other pages.
type ConsoleCards struct {
	Title string
	Cards []ConsoleCard
}

// ConsoleCard is one of them.
type ConsoleCard struct{ Name, URL, Text string }

// Kind implements ConsolePart.
func (ConsoleFacts) Kind() string { return "facts" }

// Kind implements ConsolePart.
func (ConsoleTable) Kind() string { return "table" }

// Kind implements ConsolePart.
func (ConsoleForm) Kind() string { return "form" }

// Kind implements ConsolePart.
func (ConsoleSecret) Kind() string { return "secret" }

// Kind implements ConsolePart.
func (ConsoleCards) Kind() string { return "cards" }

// Console shows a page of the console.
func (p *Pages) Console(w http.ResponseWriter, status int, v Console) {
	p.For("en").show(w, status, "console", v, policy{})
}
