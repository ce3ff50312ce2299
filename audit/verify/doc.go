// Package verify checks the audit log of mcp-authd. It imports nothing from the server: any program
// that follows these rules accepts the same logs.
//
// # The log
//
// The log is an append-only list of entries. Each entry is a leaf of a Merkle tree as in RFC 9162
// §2.1 (SHA-256, leaves prefixed with 0, nodes with 1). The bytes of a leaf are the entry in
// canonical JSON: one object with the members "at", "event" and "fields", in this order. The object
// "fields" contains only strings, and its names are sorted by their bytes. Tokens are not separated
// by spaces. Text is UTF-8; only quotation marks, backslashes and characters below U+0020 are
// escaped (RFC 8785 §3.2.2.2). "at" is UTC in RFC 3339 with milliseconds. The last field may be
// MACField. It names the writer of the entry and authenticates the entry with a key that only the
// installation has. The index of an entry is its position, and not in the leaf.
//
// # The checkpoints
//
// A checkpoint states the number of entries and the root of their tree, signed with Ed25519 in the
// format of https://c2sp.org/tlog-checkpoint. A copy out of the operator's reach reveals whether an
// earlier entry was removed, changed or moved since.
package verify
