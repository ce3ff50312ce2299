package pages

import "net/http"

// Link is the view of a one-time link's page (invitation or recovery): its purpose, and the form
// that uses it.
type Link struct {
	Action, Step          string
	Heading, Lead, Button Text
	Until                 Text // expiry of the link
	Problem               Text
	Username              string
	Password              bool     // the form asks for a new password
	Passkey               *Passkey // nil: no passkey can be created
}

// LinkMessage describes the result of a one-time link.
type LinkMessage struct{ Heading, Lead Text }

// Forgotten is the view of the page for requesting a new password.
type Forgotten struct{ Action, Step string }

// Link shows the purpose of a one-time link. Its forms post step, and password or the passkey.
func (p *Pages) Link(w http.ResponseWriter, status int, v Link) {
	p.show(w, status, "link", v, policy{script: v.Passkey != nil})
}

// LinkMessage shows the result of a one-time link, or why it cannot be used.
func (p *Pages) LinkMessage(w http.ResponseWriter, status int, v LinkMessage) {
	p.show(w, status, "linkmessage", v, policy{})
}

// Forgotten shows the form for requesting a new password by mail. It posts username and step.
func (p *Pages) Forgotten(w http.ResponseWriter, v Forgotten) {
	p.show(w, http.StatusOK, "forgotten", v, policy{})
}
