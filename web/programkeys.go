package web

import (
	"net/http"
	"time"
)

// AccountKeys are the keys that the person made for programs of theirs, a section of the account
// page: one page of them. Their forms are those of connected apps.
type AccountKeys struct {
	AccountForm
	Keys    []ProgramKey
	NextURL string // the next page; "": this is the last one
	MakeURL string // "": none is made here
}

// ProgramKey is a key as its person sees it.
type ProgramKey struct {
	ID       string // of its grant
	Name     string
	ClientID string
	Server   Party
	Scopes   []Scope
	Made     Event
	Ends     time.Time
	Used     Event // At is zero: never
	LastCall Call
	Handed   Handed
	Paused   bool
}

// MakeKey is the view of the page on which a person makes a key. Its form posts step, name, days and
// scope.
type MakeKey struct {
	Action, Step string
	Problem      Text
	Name         string
	Servers      []ServerChoice // to choose from first; empty: Server is chosen, or there is none
	Server       Party
	Scopes       []Scope
	Days         []DayChoice
	BackURL      string
}

// ServerChoice leads to the form for a server.
type ServerChoice struct {
	Server Party
	URL    string
}

// DayChoice is how long a key may live.
type DayChoice struct {
	Days    int
	Checked bool
}

// KeyMade is the view of the page that shows the secret of a key, once.
type KeyMade struct {
	Name             string
	Server           Party
	Scopes           []Scope
	Ends             time.Time
	ClientID, Secret string
	TokenURL         string
	Command          string // that gets a token
	BackURL          string
}

// MakeKey shows the form by which a key is made.
func (p *Pages) MakeKey(w http.ResponseWriter, status int, v MakeKey) {
	p.show(w, status, "makekey", v, policy{script: true})
}

// KeyMade shows a key that was made.
func (p *Pages) KeyMade(w http.ResponseWriter, v KeyMade) {
	p.show(w, http.StatusOK, "keymade", v, policy{script: true})
}
