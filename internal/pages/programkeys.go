package pages

import (
	"net/http"
	"time"
)

// AccountKeys is one page of the API keys that the user created for programs, a section of the
// account page. Their forms are the same as for connected apps.
type AccountKeys struct {
	AccountForm
	Keys    []ProgramKey
	NextURL string // the next page; "": none
	MakeURL string // "": keys cannot be created here
}

// ProgramKey is a key as shown to its user.
type ProgramKey struct {
	ID       string // of its grant
	Name     string
	ClientID string
	Server   Party
	Scopes   []Scope
	Made     Event
	Ends     time.Time
	Used     Event // zero At: never
	LastCall Call
	Handed   Handed
	Paused   bool
}

// MakeKey is the view of the page where a user creates a key. Its form posts step, name, days and
// scope.
type MakeKey struct {
	Action, Step string
	Problem      Text
	Name         string
	Servers      []ServerChoice // servers to choose from first; empty: Server is chosen, or no server exists
	Server       Party
	Scopes       []Scope
	Days         []DayChoice
	BackURL      string
}

// ServerChoice links to the form for a server.
type ServerChoice struct {
	Server Party
	URL    string
}

// DayChoice is a possible lifetime of a key.
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
	Command          string // command that gets a token
	BackURL          string
}

// MakeKey shows the form that creates a key.
func (p *Pages) MakeKey(w http.ResponseWriter, status int, v MakeKey) {
	p.show(w, status, "makekey", v, policy{script: true})
}

// KeyMade shows a new key.
func (p *Pages) KeyMade(w http.ResponseWriter, v KeyMade) {
	p.show(w, http.StatusOK, "keymade", v, policy{script: true})
}
