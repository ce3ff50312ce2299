// Package web renders the pages for users: signing in, approving an application, first setup, and
// errors. Each page has one method that takes one view struct. Nothing here makes decisions.
//
// Everything from a client is shown as hostile text: escaped, without control and bidirectional
// characters, cut to a length, and in a separate element. It can neither run nor be mistaken for
// text of the server. Pages work without script, except for passkeys; the setup page uses one to
// read the token from the address.
//
// Package text contains the texts in every language, and describes how templates refer to them.
package pages
