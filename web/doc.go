// Package web renders the pages that a person sees: signing in, approving an
// application, first setup, and what went wrong. Each page has one method that
// takes one view struct; nothing here decides anything.
//
// Whatever a client supplies is shown as hostile text: escaped, without control and
// bidirectional characters, cut to a length, and in an element of its own, so that
// it can neither run nor pass for our words. All pages work without script; only
// the setup page has one, which takes the token from the address.
//
// Package text has the words, in every language, and says how templates name them.
package web
