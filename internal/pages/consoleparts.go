package pages

import (
	"strings"
	"time"
)

// ConsolePart is a part of a page: one of the types below.
type ConsolePart interface {
	// Kind returns the name of the part's template.
	Kind() string
}

// ConsoleFacts lists the properties of one item.
type ConsoleFacts struct {
	Title string
	Facts []ConsoleFact
}

// ConsoleFact is a name with its value.
type ConsoleFact struct {
	Name  string
	Value ConsoleCell
}

// ConsoleCell is a shown value. The zero value is a dash.
type ConsoleCell struct {
	Text   string
	Code   bool // Text is an ID, an address, or a command
	Said   bool // Text is a name chosen by a client or a user, and is shown in quotation marks
	URL    string
	At     time.Time // Text is its wording, if set
	Badges []ConsoleBadge
	List   []string // one per line
	Note   string   // an additional line
	Acts   []ConsoleLink
}

// Blank reports whether the cell is empty.
func (c ConsoleCell) Blank() bool {
	return c.Text == "" && c.At.IsZero() && len(c.Badges) == 0 && len(c.List) == 0 && len(c.Acts) == 0
}

// maxWord is the longest word that is not wrapped, in bytes.
const maxWord = 20

// Word reports whether the text is one short word.
func (c ConsoleCell) Word() bool { return len(c.Text) <= maxWord && !strings.Contains(c.Text, " ") }

// ConsoleTable is a list. The first column names the row.
type ConsoleTable struct {
	Title   string // "": the page's title
	Lead    string
	Name    string // description for screen readers
	Columns []string
	Rows    [][]ConsoleCell
	Empty   ConsoleHint // shown if Rows is empty
	NextURL string
	// NextName is the text of the link to NextURL; "": the default.
	NextName string
	// FirstURL links to the first page; "": this is the first page.
	FirstURL string
	// Acting means that the last column has the actions for the row.
	Acting bool
	Acts   []ConsoleLink // for the whole list
}

// ConsoleHint suggests the next step, with its command or page.
type ConsoleHint struct {
	Text, Command string
	Link          *ConsoleLink // nil: none
}

// ConsoleForm is a form. A form that changes nothing uses GET.
type ConsoleForm struct {
	Title, Lead string
	Goes        []string // what the action removes
	Action      string
	Step        string // "": the form changes nothing
	Fields      []ConsoleField
	Button      string
	Grave       bool
	BackURL     string
	// Search shows the form in one line above its results.
	Search bool
}

// ConsoleField is a field of a form.
type ConsoleField struct {
	Name, Label, Hint string
	Type              string // "text", "number", "date", "password", "check", "select", "area", or "rows"
	Value             string
	Options           []ConsoleOption // for select; the default is the first if Value is not an option
	Checked, Required bool
	Rows              []ConsoleRow // for rows
}

// ConsoleOption is a choice of a field. Text is its label.
type ConsoleOption struct{ Value, Text string }

// ConsoleRow is one of several groups of equal fields.
type ConsoleRow struct {
	Name   string
	Fields []ConsoleField
}

// ID returns the field's element ID.
func (f ConsoleField) ID() string { return "in-" + f.Name }

// ConsoleSecret shows secrets once.
type ConsoleSecret struct {
	Title, Text string
	Secrets     []ConsoleFact
}

// ConsoleTiles shows numbers that link to the counted items.
type ConsoleTiles struct {
	Title string
	Tiles []ConsoleTile
}

// ConsoleTile is one number.
type ConsoleTile struct{ Name, Count, Note, URL, Tone string }

// ConsoleFindings lists problems and their solutions.
type ConsoleFindings struct {
	Title    string
	Findings []ConsoleFinding
	None     string // text without findings
}

// ConsoleFirst lists the first steps in a new installation.
type ConsoleFirst struct {
	Title string
	Steps []ConsoleTodo
}

// ConsoleTodo is a step. It has a page or a command.
type ConsoleTodo struct {
	Name, Text, URL, Command string
	Done                     bool
}

// ConsoleFinding is one problem.
type ConsoleFinding struct {
	Tone, Mark       string // severity, and a word for it
	Name, Text, Next string
	URL              string
}

// ConsoleVerdict is the result of an attempt.
type ConsoleVerdict struct {
	Tone, Text, Known string
	Difference        *ConsoleDifference
	Advice            []ConsoleAdvice
}

// ConsoleAdvice is the advice for one side.
type ConsoleAdvice struct {
	Who, Text string
	Turn      bool // this side has to act
}

// ConsoleDifference shows the first difference between two texts. Same is their common prefix.
type ConsoleDifference struct {
	Name      string // the compared value; "": named elsewhere
	At        int    // byte offset, from 0
	Same      string
	Got, Want string // the rest of each text
}

// ConsoleText is a literal text to copy.
type ConsoleText struct{ Title, Lead, Text string }

// ConsoleSteps lists events in order.
type ConsoleSteps struct {
	Title string
	Steps []ConsoleStep
	Note  string
}

// ConsoleStep is one event.
type ConsoleStep struct {
	ID          string
	Name        string
	Badges      []ConsoleBadge
	At          time.Time
	After       string // time since the first event
	Text        string // the request
	Decided     bool   // the verdict depends on it
	Detail      string // title of the facts, which are shown on demand
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
func (ConsoleFirst) Kind() string { return "first" }

// Kind implements ConsolePart.
func (ConsoleVerdict) Kind() string { return "verdict" }

// Kind implements ConsolePart.
func (ConsoleText) Kind() string { return "text" }

// Kind implements ConsolePart.
func (ConsoleSteps) Kind() string { return "steps" }
