package web

import (
	"net/http"
	"time"
)

// Organization is whose assertion gave an application its access.
type Organization struct {
	Entry string // the operator's name of it; "": no organization, but the person
	Host  string // of the issuer; "": not known any more
}

// Handed is what an application has handed on to helpers of its own.
type Handed struct {
	Helpers int    // how many there are
	URL     string // of the page that shows them
}

// Helpers is the view of the page on which people see the helpers of an application, and end them. Its
// form posts step, grant, act=cut and node.
type Helpers struct {
	AccountForm
	Done    Text // see AccountPage
	GrantID string
	Client  Party
	Server  Party
	Helpers []Helper
	BackURL string
}

// Helper is one of them. The application chose its name.
type Helper struct {
	ID, Name string
	Scopes   []Scope
	Ends     time.Time
	Below    []Helper // those that it handed something on to
}

// Helpers shows the helpers of an application.
func (p *Pages) Helpers(w http.ResponseWriter, v Helpers) {
	p.show(w, http.StatusOK, "helpers", v, policy{script: true})
}
