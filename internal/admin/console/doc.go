// Package console serves the pages below /admin, on which administrators do in a browser the work
// of the command line. It is a front end of package admin, and needs no scripts.
//
// Its addresses are the names of the operations: /admin/user/show?name=bob is "user show". The
// input of an operation determines its form and the output its page, so a new operation has a page
// at once. noun.go describes how the pages of a noun differ from the default: the columns of its
// list, the operations on one object, and the other lists on its page.
//
//	console.go   who is at the browser, and which page they get
//	wording.go   the console's own words for operations, and wording_fields.go for form fields
//	noun.go      settings of a noun; nouns.go defines them, in the order of the menu
//	page.go      a page with the menu, and the parts that all pages share
//	list.go      lists
//	show.go      one object
//	attempt.go   one attempt, with its steps; bundle.go sends a copy that may be published
//	audit.go     entries of the audit log, and proofs
//	health.go    health, providers and tokens: findings
//	act.go       operations that change something: confirmed first, then run
//	sent.go      runs each form once
//	goes.go      the access that an operation takes away
//	keep.go      keeps a filled-in form while its user authenticates again
//	input.go     form input
//	value.go     how a value is shown; shape.go for special values, when.go for times
//	overview.go  the first page; firststeps.go guides through a new installation
//
// A page reads its data with the permissions of the user who sees it: it neither shows nor does
// anything that their role does not permit. A change that cannot be undone has its own page, after
// a recent authentication. Its form is valid once, in that browser, for that user, operation and
// object.
package console
