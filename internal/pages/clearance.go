package pages

import (
	"net/http"
	"time"
)

// CallToClear describes a tool call that waits for approval, on both pages about it.
type CallToClear struct {
	Action, Step   string
	Client         Party
	SelfRegistered bool // only the client itself vouches for its name
	Resource       Party
	Tool           []Piece
	Until          time.Time
}

// Clearance is the view of the page where a user approves or denies one tool call.
type Clearance struct {
	CallToClear
	Arguments []Argument // all arguments, as a list of rows
	For       string     // name of the user that the call is for; "": the approver, or a machine
	Username  string
}

// ClearanceElsewhere is the view of the page for a user whose call waits for another user's
// approval.
type ClearanceElsewhere struct {
	CallToClear
	Approvers []string // names of the users who may decide; empty: an administrator
	URL       string   // of the page for the approvers
	GoesOn    bool     // an authorization request continues from here
	HomeURL   string
}

// Argument is a row: a value with its name or index, and its nesting depth.
type Argument struct {
	Depth int     // 0 for the arguments themselves
	Name  []Piece // of a member
	Index string  // of an element, from "1"; "": a member
	Kind  ArgumentKind
	Value []Piece // of a text or a literal
	Count string  // number of values in a list or an object; "0": empty
}

// ArgumentKind is the kind of a value.
type ArgumentKind string

// The kinds of values.
const (
	ArgumentText    ArgumentKind = "text"
	ArgumentLiteral ArgumentKind = "literal" // a number, a boolean or null
	ArgumentList    ArgumentKind = "list"
	ArgumentObject  ArgumentKind = "object"
)

// Piece is a part of a text that is shown exactly. Marked pieces are the names of invisible
// characters. Break adds a line break after the piece.
type Piece struct {
	Text          string
	Marked, Break bool
}

// Class returns the CSS class for the indentation of a row.
func (a Argument) Class() string { return "d" + string(rune('0'+min(max(a.Depth, 0), 8))) }

// ClearanceOutcome is the result of a tool call approval.
type ClearanceOutcome string

// The outcomes.
const (
	ClearanceGiven   ClearanceOutcome = "given"
	ClearanceRefused ClearanceOutcome = "refused"
	ClearanceLate    ClearanceOutcome = "late" // denied after the same user had approved
	ClearanceNone    ClearanceOutcome = "none" // there is nothing to decide
)

// ClearanceOver is the view of the page for a user who has nothing to decide, or no longer has.
type ClearanceOver struct {
	Outcome ClearanceOutcome
	HomeURL string
}

// Title returns the result.
func (v ClearanceOver) Title() Text { return clearanceTexts[v.Outcome][0] }

// Lead returns the explanation of the result.
func (v ClearanceOver) Lead() Text { return clearanceTexts[v.Outcome][1] }

var clearanceTexts = map[ClearanceOutcome][2]Text{
	ClearanceGiven:   {Say("clearance.given_title"), Say("clearance.given_lead")},
	ClearanceRefused: {Say("clearance.refused_title"), Say("clearance.refused_lead")},
	ClearanceLate:    {Say("clearance.late_title"), Say("clearance.late_lead")},
	ClearanceNone:    {Say("clearance.none_title"), Say("clearance.none_lead")},
}

// WaitingCall is a tool call that waits for a user's approval.
type WaitingCall struct {
	URL    string
	Tool   string
	Client Party
	Server Party
	Until  time.Time
}

// Clearance shows the tool call that waits for the user's approval. Its form posts decision
// (approve or deny) and step.
func (p *Pages) Clearance(w http.ResponseWriter, v Clearance) {
	p.show(w, http.StatusOK, "clearance", v, policy{script: true, keepOpener: true, leaves: true})
}

// ClearanceElsewhere shows whose approval a call waits for. If a request continues from it, its
// form posts decision (continue) and step.
func (p *Pages) ClearanceElsewhere(w http.ResponseWriter, v ClearanceElsewhere) {
	p.show(w, http.StatusOK, "clearanceelsewhere", v, policy{keepOpener: true, leaves: true})
}

// ClearanceOver shows that there is nothing to decide.
func (p *Pages) ClearanceOver(w http.ResponseWriter, status int, v ClearanceOver) {
	p.show(w, status, "clearanceover", v, policy{keepOpener: true})
}
