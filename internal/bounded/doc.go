// Package bounded remembers things about callers without growing with their number: a [Map] that
// forgets what has rested longest, and a [Limiter] that forgets nobody who has to wait. It imports
// the standard library only, since the package that tool authors link rests on it.
package bounded
