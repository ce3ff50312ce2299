//go:build linux || darwin || freebsd

package auditlog

import (
	"os"
	"syscall"
)

// openFlags open a file that is not a link to another one.
const openFlags = os.O_RDWR | syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// lockFile locks a file until it is closed. An error when another process has it locked.
func lockFile(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }

// ownedByUs reports whether a file belongs to the account of this process.
func ownedByUs(info os.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}
