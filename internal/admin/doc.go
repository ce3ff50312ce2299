// Package admin implements every administrative operation once. The command line, the HTTP API, the
// console and the admin MCP server are front ends: they parse an input, call an operation, and show
// its output.
//
// An [Operation] has a name that equals its command ("user disable"), and a method and a path in
// the HTTP API. Its input and output are plain structs, and it lists the roles that may use it.
// [All] returns all operations, for front ends that treat them alike: the API description and the
// tools of the MCP server.
//
// A [Caller] runs operations. [Service.Operator] is the Caller for commands with direct access to
// the database and the master key; it checks no permissions. [Service.As] is the Caller for an
// [Actor] at another front end. It refuses operations that the actor's role does not permit, and
// requires a recent authentication before changes that cannot be undone. A remote server is also a
// Caller: package api has its client.
//
// To add an operation: declare it with [define] in the file of its noun, beside the structs of its
// input and output. Then update the table in docs/api.md: go test ./internal/admin/api -update. All
// front ends then have the operation. The console shows a button where a page refers to it.
package admin
