//go:build unix

package mcpclient

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// lockFile locks a file until it is closed. It reports false if another process holds the lock.
func lockFile(f *os.File) bool {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}

// exposed returns why another user may know the content of a file, or "".
func exposed(info fs.FileInfo) string {
	if !info.Mode().IsRegular() {
		return "is not a regular file"
	}
	if open := info.Mode().Perm() & 0o077; open != 0 {
		return fmt.Sprintf("has mode %04o, so other users may read it; the mode must be 0600", info.Mode().Perm())
	}
	if at, ok := info.Sys().(*syscall.Stat_t); ok && int(at.Uid) != os.Geteuid() {
		return fmt.Sprintf("belongs to the user with id %d, and must belong to the current user", at.Uid)
	}
	return ""
}
