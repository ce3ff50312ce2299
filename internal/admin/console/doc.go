// Package console is the pages below /admin, on which people with a role do in a browser what the
// command line does: a face of package admin. It needs no script.
//
// Its addresses are the names of the operations: /admin/user/show?name=bob is "user show". What an
// operation takes makes its form, and what it returns makes its page, so that an operation that is new
// has a page at once; noun.go says what is particular about the pages of a noun: in which columns
// a list is shown, what may be done with one thing, what else belongs on its page.
//
//	console.go   who is at the browser, and which page they get
//	noun.go      what is particular about a noun; nouns.go has them, in the order of the menu
//	page.go      a page with the menu, and what is the same on all
//	list.go      lists
//	show.go      one thing
//	attempt.go   one attempt, with its steps; bundle.go sends what may be published of it
//	audit.go     entries of the audit log, and proofs
//	health.go    health, providers and tokens: what was found
//	act.go       what changes something: asked first, done then
//	sent.go      each form is carried out once
//	goes.go      what it takes away
//	keep.go      a form that was filled in while the proof of its person became too old
//	input.go     what a person fills in
//	value.go     what is shown of a value; shape.go where that is particular, when.go of times
//	overview.go  the first page
//
// A page asks for what it shows as the person who sees it: what their role may not do is neither
// shown nor done. What cannot be undone is asked on a page of its own, after a fresh proof of who they
// are, and its form is good in that browser, for that person, that operation and that thing only, and once.
package console
