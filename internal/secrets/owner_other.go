//go:build !linux && !darwin && !freebsd

package secrets

import "io/fs"

// ownerOf reports that owners and modes do not exist here.
func ownerOf(fs.FileInfo) (uid int, ok bool) { return 0, false }

func ownersOf(fs.FileInfo) (uid, gid int, ok bool) { return 0, 0, false }
