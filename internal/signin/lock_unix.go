//go:build linux || darwin || freebsd

package signin

import (
	"os"
	"syscall"
)

// lockFile locks a file until it is closed. It reports false if another program holds the lock.
func lockFile(f *os.File) bool {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}
