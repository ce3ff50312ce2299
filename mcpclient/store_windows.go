package mcpclient

import (
	"io/fs"
	"os"
	"syscall"
	"unsafe"
)

var lockFileEx = syscall.NewLazyDLL("kernel32.dll").NewProc("LockFileEx")

// lockFile locks a file until it is closed. It reports false if another process holds the lock.
func lockFile(f *os.File) bool {
	const exclusive, failImmediately = 2, 1
	var at syscall.Overlapped
	ok, _, _ := lockFileEx.Call(f.Fd(), exclusive|failImmediately, 0, 1, 0, uintptr(unsafe.Pointer(&at)))
	return ok != 0
}

// exposed returns "": the profile directory of a Windows user is closed to other users.
func exposed(fs.FileInfo) string { return "" }
