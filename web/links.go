package web

import "net/http"

// Link is the page of a one-time link: what it is for, and the form that uses it.
type Link struct {
	Action, Step          string
	Heading, Lead, Button Text
	Until                 Text // until when the link works
	Problem               Text
	Username              string
	Password              bool     // the form asks for a new password
	Passkey               *Passkey // nil: none can be made
}

// LinkMessage says what has become of a one-time link.
type LinkMessage struct{ Heading, Lead Text }

// Forgotten is the page on which a person asks for a new password.
type Forgotten struct{ Action, Step string }

// Link shows what a one-time link is for. Its forms post step, and password or the passkey.
func (p *Pages) Link(w http.ResponseWriter, status int, v Link) {
	p.show(w, status, "link", v, policy{script: v.Passkey != nil})
}

// LinkMessage shows what has become of a one-time link, or why it is of no use.
func (p *Pages) LinkMessage(w http.ResponseWriter, status int, v LinkMessage) {
	p.show(w, status, "linkmessage", v, policy{})
}

// Forgotten shows the form that asks for a new password by mail. It posts username and step.
func (p *Pages) Forgotten(w http.ResponseWriter, v Forgotten) {
	p.show(w, http.StatusOK, "forgotten", v, policy{})
}
