// Package trust decides which assertions of trusted issuers are accepted. An assertion is a JWT
// that an issuer has signed about a user (ID-JAG) or a program (workload identity). A client
// presents it to get a token (RFC 7523 §2.1).
//
//	assertion.go  Assertion, the content of an accepted assertion
//	issuers.go    Issuers: the entries, and Verify
//	token.go      strict parsing of the JWT, without verification
//	assemble.go   entries of the configuration and the store, combined
//	entry.go      validation of an entry
//	presets.go    defaults for known kinds of issuers
//	rules.go      the rules for assertions, in order
//	claims.go     the rules about claims, and the fields of an Assertion
//	match.go      matchers and globs
//	template.go   names of workloads
//	keys.go       the keys of issuers: where they are, how often they are read
//	keyset.go     JSON Web Key Sets
//	refusal.go    why an assertion is refused, by rule
//	explain.go    the result of every rule, for the administrator
//	health.go     whether keys are available, and rules that admit too much
//	removed.go    revokes grants of entries that were removed from the configuration
//	event.go      security events of the issuers
//
// An entry is found by the unverified iss of the assertion. The assertion is then verified only
// with the keys of that issuer. Several entries of one issuer are alternatives: the first entry
// whose rules all match applies. This package redeems no assertion and looks up no user.
package trust
