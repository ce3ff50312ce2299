// Package verify checks the audit log of mcp-authd, and imports nothing of the server: what it
// accepts is accepted by every program that follows the same few rules.
//
// # The log
//
// The log is a list of entries that only grows. An entry is a leaf of a Merkle tree as in RFC 9162
// §2.1 (SHA-256, leaves prefixed by 0, nodes by 1). The bytes of a leaf are the entry in canonical
// JSON: one object of the members "at", "event" and "fields", in this order, where fields is an object
// of text whose names are sorted by their bytes; nothing stands between tokens; text is UTF-8, in which
// quotation mark, backslash and what is below U+0020 are escaped, and nothing else (RFC 8785 §3.2.2.2).
// "at" is UTC in RFC 3339 with milliseconds. The last field may be MACField: it names the writer of the entry
// and authenticates it to the installation, which alone has the key. To everyone else it is part of the leaf, covered
// by the tree as the rest. The index of an entry is its place, and not in the leaf.
//
// # The checkpoints
//
// A checkpoint says how many entries there are and what the root of their tree is, signed with
// Ed25519: the format of https://c2sp.org/tlog-checkpoint. One that is kept where the operator of the
// log cannot reach it shows whether anything before it was removed, changed or moved since.
package verify
