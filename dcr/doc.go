// Package dcr lets clients register themselves (RFC 7591) and resolves client ids.
//
// Registration stores nothing. The client id it answers with carries the
// registered metadata, encrypted and authenticated under the master key, and the
// secret of a confidential client is derived from that id. Ten thousand
// registrations that never lead to a grant therefore leave no trace, and a client
// outlives a lost database as long as the master key survives. The store gets a
// row only with the first grant, or when the metadata do not fit into an id that
// every client can handle. A tombstone in the store ends a sealed id for good.
package dcr
