//go:build linux || darwin || freebsd

package main

import (
	"io/fs"
	"syscall"
)

// mayWrite reports whether this user may make files in a directory.
func mayWrite(directory string) error {
	const write, search = 2, 1 // access(2)
	return syscall.Access(directory, write|search)
}

// ownerOf returns the user that a file belongs to, not ok where files have none.
func ownerOf(info fs.FileInfo) (uid int, ok bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(stat.Uid), true
}
