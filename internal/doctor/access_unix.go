//go:build linux || darwin || freebsd

package doctor

import "syscall"

// mayWrite returns an error if this user cannot create files in a directory.
func mayWrite(directory string) error {
	const write, search = 2, 1 // access(2)
	return syscall.Access(directory, write|search)
}
