//go:build !linux && !darwin && !freebsd

package sqlite

import "os"

// lockByte does nothing where this system's locks are not known.
func lockByte(*os.File, int64) bool { return true }

// holder finds no other process where this system's locks are not known.
func holder(*os.File, int64) (pid int, held bool) { return 0, false }
