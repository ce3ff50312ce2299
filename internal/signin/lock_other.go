//go:build !linux && !darwin && !freebsd

package signin

import "os"

// lockFile takes nothing here: of two programs at once the one that writes last is remembered.
func lockFile(*os.File) bool { return true }
