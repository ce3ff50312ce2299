package web

import (
	"net/http"
	"time"
)

// AccountPage is the view of the page on which people see what is connected to their account, and
// end it. Each section is a template of its own, and each of its forms posts Step, act, and the id
// of what it is about.
type AccountPage struct {
	// Done says what the last act came to, and Problem why it came to nothing; the zero value: there
	// was none.
	Done, Problem Text
	News          Notices // what has changed and is not seen yet
	Waiting       []WaitingCall
	You           AccountYou
	Apps          AccountApps
	Keys          AccountKeys
	SignIns       AccountSignIns
	Stop          AccountForm
	HomeURL       string
}

// AccountForm is where the forms of a section are posted.
type AccountForm struct{ Action, Step string }

// AccountYou is who the person is, and what lets them in.
type AccountYou struct {
	Username string
	// ConsoleURL is where the person administers the server; "": nowhere.
	ConsoleURL string
	// Back is the address of the page, to go on from after a choice of the language.
	Back    string
	Ways    Ways
	SignOut AccountForm
	Speak   foot // filled in by Account
}

// AccountApps are the applications that the person has connected: one page of them.
type AccountApps struct {
	AccountForm
	Apps    []ConnectedApp
	NextURL string // the next page; "": this is the last one
	Later   bool   // this is not the first page
	// Paused are applications that are paused and no longer connected. They have pages of their own.
	Paused        []PausedApp
	MorePausedURL string
}

// PausedApp is a pause that has outlived what was paused.
type PausedApp struct {
	ID     string // of the pause
	Client Party
	Server Party
	Since  time.Time
}

// ConnectedApp is a grant as its person sees it.
type ConnectedApp struct {
	ID             string // of the grant
	Client         Party
	SelfRegistered bool // only the client itself vouches for its name
	Server         Party
	Scopes         []Scope
	StaySignedIn   bool
	Username       string // whose access it is
	By             Organization
	Account        Account // at a provider, that the access rests on; the zero value: none
	Given          Event
	FirstUsed      time.Time
	Used           Event
	LastCall       Call
	Handed         Handed
	Paused         bool
}

// Event is when something took place, and where.
type Event struct {
	At    time.Time
	Agent Text   // a browser
	From  string // a network; "": not known
}

// Call is a call of a tool.
type Call struct {
	Tool string    // "": its name is not known
	At   time.Time // zero: no call is known
}

// AccountSignIns are the browsers in which the person is signed in.
type AccountSignIns struct {
	AccountForm
	SignIns []SignIn
	More    bool // there are others
	Others  bool // there is one beside this one
}

// SignIn is one of them.
type SignIn struct {
	ID    string
	Here  bool // it is the browser that shows the page
	Agent Text
	From  string
	Begun time.Time
	Seen  time.Time
}

// StopEverything is the view of the page that asks once more.
type StopEverything struct {
	AccountForm
	BackURL string
}

// Account shows the account page.
func (p *Pages) Account(w http.ResponseWriter, status int, v AccountPage) {
	v.You.Speak = p.speaking(v.You.Back)
	p.show(w, status, "account", v, policy{leaves: true, script: true})
}

// StopEverything asks whether everything is to end.
func (p *Pages) StopEverything(w http.ResponseWriter, v StopEverything) {
	p.show(w, http.StatusOK, "stopeverything", v, policy{script: true})
}
