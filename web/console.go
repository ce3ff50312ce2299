package web

import "net/http"

// Console is the view of a page of the console, for people with a role. It is in English, as the command
// line is whose words it has.
type Console struct {
	Menu       []ConsoleGroup
	HomeURL    string // the overview
	Overview   bool   // which is the page
	Username   string
	Role       string
	AccountURL string
	SignOut    AccountForm
	Trail      []ConsoleLink // the pages above this one
	Title      string
	Badges     []ConsoleBadge
	Lead       string
	Done       string // what the last act came to
	Problem    string // why it came to nothing
	Acts       []ConsoleLink
	Live       bool // what changes on the page can be followed
	HereURL    string
	Parts      []ConsolePart
}

// ConsoleGroup is a group of pages in the menu.
type ConsoleGroup struct {
	Name  string
	Links []ConsoleLink
}

// ConsoleLink leads to another page of the console.
type ConsoleLink struct {
	Name, URL string
	Current   bool // the page is there
	Grave     bool // it leads to what takes something away
}

// ConsoleBadge is a word that is to be seen at once.
type ConsoleBadge struct {
	Text string
	Tone string // "good", "bad", "warn", or "" for none of these
}

// Console shows a page of the console. One that can be followed has a script that asks for it again.
func (p *Pages) Console(w http.ResponseWriter, status int, v Console) {
	p.For("en").show(w, status, "console", v, policy{script: v.Live, connect: v.Live})
}
