// Package dcr lets clients register themselves (RFC 7591) and resolves client IDs.
//
// Registration stores nothing. The client ID in the response carries the registered metadata,
// encrypted and authenticated with the master key. The secret of a confidential client is derived
// from that ID. Ten thousand registrations that never lead to a grant therefore leave no trace. A
// client survives the loss of the database as long as the master key survives.
//
// The store gets a row only with the first grant, or when the metadata do not fit into an ID that
// every client can handle. A tombstone in the store invalidates a sealed ID permanently.
package dcr
