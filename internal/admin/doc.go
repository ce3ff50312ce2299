// Package admin is what an operator can do, each verb once. The command line, the HTTP API, the console
// and the admin MCP server are faces of it: they read an input, have an operation carried out, and show
// its output.
//
// An [Operation] has a name, which is that of the command ("user disable"), a method and a path in the
// HTTP API, an input and an output, which are plain structs, and the roles that may use it. [All] lists
// them, for faces that treat all alike: the API's description, the tools of the MCP server.
//
// A [Caller] carries operations out. [Service.Operator] is that of a person with the database and the
// master key at hand, who is asked nothing. [Service.As] is an [Actor] at one of the other faces: it
// refuses what their role may not do, and asks for a fresh proof of who they are before what cannot be
// undone. Another server is a Caller, too: package api has its client.
//
// To add an operation: declare it in the file of its noun with [define], with the struct of its input and
// output beside it, and write the table of docs/api.md: go test ./internal/admin/api -update. All faces
// have it then; the console shows a button where its page asks for it.
package admin
