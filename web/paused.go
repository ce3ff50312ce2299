package web

import (
	"net/http"
	"time"
)

// Paused is the view of the page that says that the person has paused the application which asks for access. Of
// the request it shows who asks, for which MCP server, and where the answer goes.
type Paused struct {
	Action, Step string
	Request
	Username string
	Since    time.Time
	Device   bool // the application is on a device, which is answered nowhere
}

// Paused offers to resume an application. Its form posts decision (resume or deny) and step.
func (p *Pages) Paused(w http.ResponseWriter, v Paused) {
	p.show(w, http.StatusOK, "paused", v, policy{leaves: true, keepOpener: true})
}
