//go:build linux || darwin || freebsd

package secrets

import (
	"io/fs"
	"syscall"
)

// ownerOf returns the user who owns a file. ok is false if files have no owner.
func ownerOf(info fs.FileInfo) (uid int, ok bool) {
	uid, _, ok = ownersOf(info)
	return uid, ok
}

// ownersOf is ownerOf with the group.
func ownersOf(info fs.FileInfo) (uid, gid int, ok bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, false
	}
	return int(stat.Uid), int(stat.Gid), true
}
