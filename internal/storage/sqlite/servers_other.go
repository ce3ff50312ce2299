//go:build !linux && !darwin && !freebsd

package sqlite

import "os"

// lockByte does nothing on systems whose locks are not supported.
func lockByte(*os.File, int64) bool { return true }

// holder finds no process on systems whose locks are not supported.
func holder(*os.File, int64) (pid int, held bool) { return 0, false }
