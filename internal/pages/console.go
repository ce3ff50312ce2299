package pages

import "net/http"

// Console is the view of a page of the administration console. It is in English, like the command
// line, whose terms it uses.
type Console struct {
	Menu       []ConsoleGroup
	HomeURL    string // the overview
	Overview   bool   // this page is the overview
	Username   string
	Role       string
	AccountURL string
	SignOut    AccountForm
	Trail      []ConsoleLink // parent pages
	Title      string
	Badges     []ConsoleBadge
	Lead       string
	Done       string // result of the last action
	Problem    string // reason for its failure
	Acts       []ConsoleLink
	Live       bool // the page can be updated live
	HereURL    string
	Parts      []ConsolePart
}

// ConsoleGroup is a group of pages in the menu.
type ConsoleGroup struct {
	Name  string
	Links []ConsoleLink
}

// ConsoleLink links to another page of the console.
type ConsoleLink struct {
	Name, URL string
	Current   bool // the page is open
	Grave     bool // it leads to a destructive action
}

// ConsoleBadge is a highlighted word.
type ConsoleBadge struct {
	Text string
	Tone string // "good", "bad", "warn", or "" for neutral
}

// Console shows a page of the console. A live page has a script that reloads it.
func (p *Pages) Console(w http.ResponseWriter, status int, v Console) {
	p.For("en").show(w, status, "console", v, policy{script: v.Live, connect: v.Live})
}
