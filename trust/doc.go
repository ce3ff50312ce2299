// Package trust decides which assertions of others are believed: JWTs that an issuer has signed about a
// person (ID-JAG) or about a program (workload identity), and that a client presents for a token (RFC
// 7523 §2.1).
//
//	assertion.go  what an assertion says, once it is believed
//	issuers.go    Issuers: the entries, and Verify
//	token.go      the JWT, read strictly, with nothing believed
//	assemble.go   the entries of the configuration and the store, together
//	entry.go      an entry, ready to be applied
//	presets.go    what is known of kinds of issuers
//	rules.go      the rules that an assertion has to keep, in their order
//	claims.go     the rules about claims, and what an Assertion takes from them
//	match.go      matchers and globs
//	template.go   names of workloads
//	keys.go       the keys of issuers: where they are, how often they are read
//	keyset.go     JSON Web Key Sets
//	refusal.go    why an assertion is refused, by rule
//	explain.go    every verdict of every rule, for the operator
//	health.go     whether keys can be had, and rules that admit too much
//	removed.go    the end of what rests on entries that the configuration has no more
//	event.go      security events of the issuers
//
// An entry is found by the iss of the assertion, which is not verified yet, and the assertion is
// then verified by the keys of that issuer alone. Several entries of one issuer are alternatives: the
// first of which every rule holds counts. Nothing here spends an assertion or finds a person.
package trust
