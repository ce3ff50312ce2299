//go:build linux || darwin || freebsd

package auditlog

import (
	"os"
	"syscall"
)

// openFlags rejects symbolic links, and does not block.
const openFlags = os.O_RDWR | syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// lockFile locks a file until it is closed. It fails if another process holds the lock.
func lockFile(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }

// ownedByUs reports whether the account of this process owns a file.
func ownedByUs(info os.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}
