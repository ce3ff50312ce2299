package web

import (
	"net/http"
	"time"
)

// Remote is the view of the page of a browser that waits for its person to sign it in from another
// device. It works without script: by the link to itself, and by itself every few seconds.
type Remote struct {
	QR      QR     // of URL with the code in it
	URL     string // to open on the other device
	Code    string // to type there
	Number  string // to type there after that: no picture and no link has it
	Minutes int    // for which it is good
	Seconds int    // the same
	SelfURL string // this page
	// StateURL answers 204 while there is nothing new, to the script.
	StateURL   string
	ElsewayURL string // where to sign in in another way
}

// RemoteOver is the view of the page of a browser that was not signed in.
type RemoteOver struct {
	Denied   bool   // else it took too long
	AgainURL string // where to sign in
}

// RemoteAsk is the view of the page on which a person decides about a browser on another device. Its
// form posts decision (approve or deny), number and step.
type RemoteAsk struct {
	Action, Step string
	Problem      Text
	Code         string // as the browser shows it
	// Agent is the browser, Address where it asks from, and Near says that this is the network that
	// the person is in.
	Agent    Text
	Address  string
	Near     bool
	Asked    time.Time
	Username string
	// SignOutAction and SignOutStep are the form behind "Use another account".
	SignOutAction, SignOutStep string
}

// RemoteDone is the view of the page after RemoteAsk.
type RemoteDone struct {
	Outcome    string // approved, denied, or "wrong number", which denies the browser
	AccountURL string
}

// Remote shows what the person needs on the other device.
func (p *Pages) Remote(w http.ResponseWriter, v Remote) {
	p.show(w, http.StatusOK, "remote", v, policy{keepOpener: true, script: true, connect: true})
}

// RemoteOver shows that the browser waits no longer.
func (p *Pages) RemoteOver(w http.ResponseWriter, v RemoteOver) {
	p.show(w, http.StatusOK, "remoteover", v, policy{keepOpener: true})
}

// RemoteAsk shows which browser asks.
func (p *Pages) RemoteAsk(w http.ResponseWriter, status int, v RemoteAsk) {
	p.show(w, status, "remoteask", v, policy{script: true})
}

// RemoteDone shows what has become of that.
func (p *Pages) RemoteDone(w http.ResponseWriter, v RemoteDone) {
	p.show(w, http.StatusOK, "remotedone", v, policy{script: true})
}
