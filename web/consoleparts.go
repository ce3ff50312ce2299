package web

import (
	"strings"
	"time"
)

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
	Said   bool // Text is what a client or a person calls itself, and stands between quotation marks
	URL    string
	At     time.Time // Text are the words for it, if any
	Badges []ConsoleBadge
	List   []string // one below the other
	Note   string   // a line below
	Acts   []ConsoleLink
}

// Blank reports whether there is nothing to show.
func (c ConsoleCell) Blank() bool {
	return c.Text == "" && c.At.IsZero() && len(c.Badges) == 0 && len(c.List) == 0 && len(c.Acts) == 0
}

// maxWord is how long a word is that stays in one line, in bytes.
const maxWord = 20

// Word reports a text of one short word.
func (c ConsoleCell) Word() bool { return len(c.Text) <= maxWord && !strings.Contains(c.Text, " ") }

// ConsoleTable is a list. The first column names the row.
type ConsoleTable struct {
	Title   string // "": the page's
	Lead    string
	Name    string // what it is a list of, for those who do not see it
	Columns []string
	Rows    [][]ConsoleCell
	Empty   ConsoleHint // where there is no row
	NextURL string
	// NextName is the text of the link to NextURL; "": that it is the next page.
	NextName string
	// FirstURL leads back to the first page; "": this is it.
	FirstURL string
	// Acting: the last column has what can be done with the row.
	Acting bool
	Acts   []ConsoleLink // about the list
}

// ConsoleHint says what to do next, and the command that does it or the page where it is done.
type ConsoleHint struct {
	Text, Command string
	Link          *ConsoleLink // nil: none
}

// ConsoleForm is what a person fills in. One that only asks is sent by GET.
type ConsoleForm struct {
	Title, Lead string
	Goes        []string // what it takes away
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
	Type              string // "text", "number", "date", "password", "check", "select", "area", or "rows"
	Value             string
	Options           []string // of select; the first is chosen when Value is none of them
	Checked, Required bool
	Rows              []ConsoleRow // of rows
}

// ConsoleRow is one of several things that are filled in alike.
type ConsoleRow struct {
	Name   string
	Fields []ConsoleField
}

// ID names the field in the page.
func (f ConsoleField) ID() string { return "in-" + f.Name }

// ConsoleSecret is shown once.
type ConsoleSecret struct {
	Title, Text string
	Secrets     []ConsoleFact
}

// ConsoleTiles are numbers, each of which leads to what it counts.
type ConsoleTiles struct {
	Title string
	Tiles []ConsoleTile
}

// ConsoleTile is one of them.
type ConsoleTile struct{ Name, Count, Note, URL, Tone string }

// ConsoleFindings are what was found to be wrong, and what to do about it.
type ConsoleFindings struct {
	Title    string
	Findings []ConsoleFinding
	None     string // where there is none
}

// ConsoleFinding is one of them.
type ConsoleFinding struct {
	Tone, Mark       string // how bad it is, and in a word
	Name, Text, Next string
	URL              string
}

// ConsoleVerdict is what became of an attempt.
type ConsoleVerdict struct {
	Tone, Text, Known string
	Difference        *ConsoleDifference
	Advice            []ConsoleAdvice
}

// ConsoleAdvice is what one side can do.
type ConsoleAdvice struct {
	Who, Text string
	Turn      bool // it is theirs to do
}

// ConsoleDifference is where two texts differ first. Same is what both have before that.
type ConsoleDifference struct {
	Name      string // of what; "": it is said elsewhere
	At        int    // the byte, from 0
	Same      string
	Got, Want string // the rest of each
}

// ConsoleText is a text as it is, to be copied.
type ConsoleText struct{ Title, Lead, Text string }

// ConsoleSteps are what took place, in its order.
type ConsoleSteps struct {
	Title string
	Steps []ConsoleStep
	Note  string
}

// ConsoleStep is one of them.
type ConsoleStep struct {
	ID          string
	Name        string
	Badges      []ConsoleBadge
	At          time.Time
	After       string // since the first one
	Text        string // what was asked
	Decided     bool   // the verdict rests on it
	Detail      string // names the facts, which are shown when a person asks for them
	Facts       []ConsoleFact
	Differences []ConsoleDifference
}

// Kind implements ConsolePart.
func (ConsoleFacts) Kind() string { return "facts" }

// Kind implements ConsolePart.
func (ConsoleTable) Kind() string { return "table" }

// Kind implements ConsolePart.
func (ConsoleForm) Kind() string { return "form" }

// Kind implements ConsolePart.
func (ConsoleSecret) Kind() string { return "secret" }

// Kind implements ConsolePart.
func (ConsoleTiles) Kind() string { return "tiles" }

// Kind implements ConsolePart.
func (ConsoleFindings) Kind() string { return "findings" }

// Kind implements ConsolePart.
func (ConsoleVerdict) Kind() string { return "verdict" }

// Kind implements ConsolePart.
func (ConsoleText) Kind() string { return "text" }

// Kind implements ConsolePart.
func (ConsoleSteps) Kind() string { return "steps" }
