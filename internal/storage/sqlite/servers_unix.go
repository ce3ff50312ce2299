//go:build linux || darwin || freebsd

package sqlite

import (
	"io"
	"os"
	"syscall"
)

// lockByte takes the lock of one byte, or reports that another process has it.
func lockByte(f *os.File, at int64) bool {
	l := syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart, Start: at, Len: 1}
	return syscall.FcntlFlock(f.Fd(), syscall.F_SETLK, &l) == nil
}

// holder returns the other process that has the lock of one byte.
func holder(f *os.File, at int64) (pid int, held bool) {
	l := syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart, Start: at, Len: 1}
	if err := syscall.FcntlFlock(f.Fd(), syscall.F_GETLK, &l); err != nil || l.Type == syscall.F_UNLCK {
		return 0, false
	}
	return int(l.Pid), true
}
