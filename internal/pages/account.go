package pages

import (
	"net/http"
	"slices"
	"time"
)

// AccountPage is the view of the page where users see what is connected to their account and can
// revoke it. Each section is a template, and each of its forms posts Step, act, and the ID of its
// item.
type AccountPage struct {
	// Done is the result of the last action, and Problem the reason for its failure. Zero value: no
	// action.
	Done, Problem Text
	News          Notices // unseen changes
	Waiting       []WaitingCall
	You           AccountYou
	Apps          AccountApps
	Keys          AccountKeys
	SignIns       AccountSignIns
	Stop          AccountForm
	HomeURL       string
}

// AccountForm is the target of a section's forms.
type AccountForm struct{ Action, Step string }

// AccountYou describes the user and the ways to sign in.
type AccountYou struct {
	Username string
	// ConsoleURL is the administration console; "": not offered.
	ConsoleURL string
	// Back is the address of the page, to return to after a choice of language.
	Back    string
	Ways    Ways
	SignOut AccountForm
	Speak   foot // filled in by Account
}

// AccountApps is one page of the applications that the user has connected.
type AccountApps struct {
	AccountForm
	Apps    []ConnectedApp
	NextURL string // the next page; "": none
	Later   bool   // not the first page
	// Paused lists applications that are paused and no longer connected. They are paged separately.
	Paused        []PausedApp
	MorePausedURL string
}

// PausedApp is a pause whose connection no longer exists.
type PausedApp struct {
	ID     string // of the pause
	Client Party
	Server Party
	Since  time.Time
}

// ConnectedApp is an application with all that its person has connected it to.
type ConnectedApp struct {
	ID             string // of its newest grant
	Client         Party
	SelfRegistered bool // only the client itself vouches for its name
	Connections    int  // grants that end with it
	Servers        []ConnectedServer
	Several        bool // there is more than one of Servers, here or on another page
	Used           time.Time
}

// Paused reports whether all that is shown of the application is paused.
func (a ConnectedApp) Paused() bool {
	return !slices.ContainsFunc(a.Servers, func(s ConnectedServer) bool { return !s.Paused })
}

// ConnectedServer is what an application has at an MCP server, as its person sees it.
type ConnectedServer struct {
	ID           string // of the grant
	Client       Party  // when it has another name or host than the application; else the zero value
	Server       Party
	Scopes       []Scope
	StaySignedIn bool
	Username     string // whose access it is
	By           Organization
	Account      Account // at a provider, that the access rests on; the zero value: none
	Given        Event
	FirstUsed    time.Time
	Used         Event
	LastCall     Call
	Handed       Handed
	Paused       bool
}

// Event is when and where something happened.
type Event struct {
	At    time.Time
	Agent Text   // a browser
	From  string // a network; "": unknown
}

// Call is a tool call.
type Call struct {
	Tool string    // "": unknown
	At   time.Time // zero: no known call
}

// AccountSignIns lists the browsers where the user is signed in.
type AccountSignIns struct {
	AccountForm
	SignIns []SignIn
	More    bool // there are more
	Others  bool // there is at least one besides this one
}

// SignIn is one of the browsers.
type SignIn struct {
	ID    string
	Here  bool // the browser that shows the page
	Agent Text
	From  string
	Begun time.Time
	Seen  time.Time
}

// StopEverything is the view of the confirmation page.
type StopEverything struct {
	AccountForm
	BackURL string
}

// Account shows the account page.
func (p *Pages) Account(w http.ResponseWriter, status int, v AccountPage) {
	v.You.Speak = p.speaking(v.You.Back)
	p.show(w, status, "account", v, policy{leaves: true, script: true})
}

// StopEverything asks the user to confirm the end of all access.
func (p *Pages) StopEverything(w http.ResponseWriter, v StopEverything) {
	p.show(w, http.StatusOK, "stopeverything", v, policy{script: true})
}
