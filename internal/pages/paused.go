package pages

import (
	"net/http"
	"time"
)

// Paused is the view of the page that says that the user has paused the requesting application. Of
// the request it shows the application, the MCP server and the destination of the response.
type Paused struct {
	Action, Step string
	Request
	Username string
	Since    time.Time
	Device   bool // the application is on a device and gets no redirect
}

// Paused offers to resume an application. Its form posts decision (resume or deny) and step.
func (p *Pages) Paused(w http.ResponseWriter, v Paused) {
	p.show(w, http.StatusOK, "paused", v, policy{leaves: true, keepOpener: true})
}
