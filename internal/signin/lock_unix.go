//go:build linux || darwin || freebsd

package signin

import (
	"os"
	"syscall"
)

// lockFile takes a file until it is closed, or reports that another program has it.
func lockFile(f *os.File) bool {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}
