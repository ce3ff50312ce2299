package web

import (
	"net/http"
	"time"
)

// CallToClear is what both pages about a call of a tool that waits show of it.
type CallToClear struct {
	Action, Step   string
	Client         Party
	SelfRegistered bool // only the client itself vouches for its name
	Resource       Party
	Tool           []Piece
	Until          time.Time
}

// Clearance is the view of the page on which a person decides about one call of a tool.
type Clearance struct {
	CallToClear
	Arguments []Argument // all of them, as a list of rows
	For       string     // the name of the person for whom the call is made; "": the one who decides, or a machine
	Username  string
}

// ClearanceElsewhere is the view of the page that tells a person for whom a call of theirs waits.
type ClearanceElsewhere struct {
	CallToClear
	Approvers []string // the names of those who may decide; none: an administrator
	URL       string   // of the page for them
	GoesOn    bool     // an authorization request goes on from here
	HomeURL   string
}

// Argument is a row: a value with its name or place, as deep as it is nested.
type Argument struct {
	Depth int     // 0 for the arguments themselves
	Name  []Piece // of a member
	Index string  // of an element: its place, from "1"; "": a member
	Kind  ArgumentKind
	Value []Piece // of a text or a literal
	Count string  // how many values a list or an object has; "0": none
}

// ArgumentKind is the kind of a value.
type ArgumentKind string

// The kinds of values.
const (
	ArgumentText    ArgumentKind = "text"
	ArgumentLiteral ArgumentKind = "literal" // a number, a truth value or null
	ArgumentList    ArgumentKind = "list"
	ArgumentObject  ArgumentKind = "object"
)

// Piece is a part of a text that is shown exactly. Marked ones are the names of characters that would not
// be seen; behind one with Break a line ends.
type Piece struct {
	Text          string
	Marked, Break bool
}

// Class is how far a row is moved in.
func (a Argument) Class() string { return "d" + string(rune('0'+min(max(a.Depth, 0), 8))) }

// ClearanceOutcome says what has become of a clearance.
type ClearanceOutcome string

// The outcomes.
const (
	ClearanceGiven   ClearanceOutcome = "given"
	ClearanceRefused ClearanceOutcome = "refused"
	ClearanceLate    ClearanceOutcome = "late" // a denial came after the same person had approved
	ClearanceNone    ClearanceOutcome = "none" // there is nothing to decide, for whatever reason
)

// ClearanceOver is the view of the page for a person who has nothing to decide, or nothing any more.
type ClearanceOver struct {
	Outcome ClearanceOutcome
	HomeURL string
}

// Title is what has become of it.
func (v ClearanceOver) Title() Text { return clearanceTexts[v.Outcome][0] }

// Lead is what that means.
func (v ClearanceOver) Lead() Text { return clearanceTexts[v.Outcome][1] }

var clearanceTexts = map[ClearanceOutcome][2]Text{
	ClearanceGiven:   {Say("clearance.given_title"), Say("clearance.given_lead")},
	ClearanceRefused: {Say("clearance.refused_title"), Say("clearance.refused_lead")},
	ClearanceLate:    {Say("clearance.late_title"), Say("clearance.late_lead")},
	ClearanceNone:    {Say("clearance.none_title"), Say("clearance.none_lead")},
}

// WaitingCall is a call that waits for a person's permission.
type WaitingCall struct {
	URL    string
	Tool   string
	Client Party
	Server Party
	Until  time.Time
}

// Clearance shows which call of a tool waits for the person's permission. Its form posts decision (approve or
// deny) and step.
func (p *Pages) Clearance(w http.ResponseWriter, v Clearance) {
	p.show(w, http.StatusOK, "clearance", v, policy{script: true, keepOpener: true, leaves: true})
}

// ClearanceElsewhere shows for whom a call waits. Where a request goes on from it, its form posts decision
// (continue) and step.
func (p *Pages) ClearanceElsewhere(w http.ResponseWriter, v ClearanceElsewhere) {
	p.show(w, http.StatusOK, "clearanceelsewhere", v, policy{keepOpener: true, leaves: true})
}

// ClearanceOver shows that there is nothing to decide.
func (p *Pages) ClearanceOver(w http.ResponseWriter, status int, v ClearanceOver) {
	p.show(w, status, "clearanceover", v, policy{keepOpener: true})
}
