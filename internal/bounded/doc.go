// Package bounded remembers callers in a fixed amount of memory. A [Map] forgets the least recently
// used entry; a [Limiter] never forgets a caller that must wait. It imports only the standard
// library, because mcpresource depends on it.
package bounded
