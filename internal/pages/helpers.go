package pages

import (
	"net/http"
	"time"
)

// Organization identifies the issuer whose assertion gave an application its access.
type Organization struct {
	Entry string // the administrator's name for it; "": the user gave the access
	Host  string // of the issuer; "": no longer known
}

// Handed describes the access that an application has delegated to sub-agents.
type Handed struct {
	Helpers int    // number of sub-agents
	URL     string // of the page that lists them
}

// Helpers is the view of the page where users see the sub-agents of an application and can revoke
// their access. Its form posts step, grant, act=cut and node.
type Helpers struct {
	AccountForm
	Done    Text // see AccountPage
	GrantID string
	Client  Party
	Server  Party
	Helpers []Helper
	BackURL string
}

// Helper is one sub-agent. The application chose its name.
type Helper struct {
	ID, Name string
	Scopes   []Scope
	Ends     time.Time
	Below    []Helper // sub-agents that it delegated access to
}

// Helpers shows the sub-agents of an application.
func (p *Pages) Helpers(w http.ResponseWriter, v Helpers) {
	p.show(w, http.StatusOK, "helpers", v, policy{script: true})
}
