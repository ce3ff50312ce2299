package pages

import (
	"net/http"
	"time"
)

// Remote is the view of the page in a browser that waits until its user signs it in from another
// device. It works without script: it has a link to itself, and reloads every few seconds.
type Remote struct {
	QR      QR     // of URL including the code
	URL     string // to open on the other device
	Code    string // to type there
	Number  string // to type after the code; it is in no picture or link
	Minutes int    // minutes until it expires
	Seconds int    // the same in seconds
	SelfURL string // URL of this page
	// StateURL answers 204 to the script while nothing has changed.
	StateURL   string
	ElsewayURL string // page with other ways to sign in
}

// RemoteOver is the view of the page in a browser that was not signed in.
type RemoteOver struct {
	Denied   bool   // false: it expired
	AgainURL string // sign-in page
}

// RemoteAsk is the view of the page where a user approves or denies a browser on another device.
// Its form posts decision (approve or deny), number and step.
type RemoteAsk struct {
	Action, Step string
	Problem      Text
	Code         string // as shown in the browser
	// Agent is the browser and Address its address. Near means that it is in the user's network.
	Agent    Text
	Address  string
	Near     bool
	Asked    time.Time
	Username string
	// SignOutAction and SignOutStep are the form for "Use another account".
	SignOutAction, SignOutStep string
}

// RemoteDone is the view of the page after RemoteAsk.
type RemoteDone struct {
	Outcome    string // approved, denied, or "wrong number", which also denies the browser
	AccountURL string
}

// Remote shows the code and number for the other device.
func (p *Pages) Remote(w http.ResponseWriter, v Remote) {
	p.show(w, http.StatusOK, "remote", v, policy{keepOpener: true, script: true, connect: true})
}

// RemoteOver shows that the browser no longer waits.
func (p *Pages) RemoteOver(w http.ResponseWriter, v RemoteOver) {
	p.show(w, http.StatusOK, "remoteover", v, policy{keepOpener: true})
}

// RemoteAsk shows the requesting browser.
func (p *Pages) RemoteAsk(w http.ResponseWriter, status int, v RemoteAsk) {
	p.show(w, status, "remoteask", v, policy{script: true})
}

// RemoteDone shows the result of RemoteAsk.
func (p *Pages) RemoteDone(w http.ResponseWriter, v RemoteDone) {
	p.show(w, http.StatusOK, "remotedone", v, policy{script: true})
}
