//go:build !linux && !darwin && !freebsd

package installation

import (
	"io/fs"
	"os"
)

// lockDirectory locks nothing on this system.
func lockDirectory(*os.File) bool { return false }

// ownedByUs always returns false on this system.
func ownedByUs(fs.FileInfo) bool { return false }
