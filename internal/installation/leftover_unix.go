//go:build linux || darwin || freebsd

package installation

import (
	"io/fs"
	"os"
	"syscall"
)

// lockDirectory locks a directory until it is closed, and reports whether it could.
func lockDirectory(f *os.File) bool {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}

// ownedByUs reports whether a file belongs to the user of this process.
func ownedByUs(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}
