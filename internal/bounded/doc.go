// Package bounded remembers things about callers without growing with their number: a [Map] that
// forgets the entry that has rested longest, and a [Limiter] that never forgets a caller who has to
// wait. It imports the standard library only, since the package that tool authors link rests on it.
package bounded
