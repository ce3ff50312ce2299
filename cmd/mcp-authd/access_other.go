//go:build !linux && !darwin && !freebsd

package main

import "io/fs"

// mayWrite takes it for granted where this system is not asked.
func mayWrite(string) error { return nil }

// ownerOf says that owner and mode mean nothing here.
func ownerOf(fs.FileInfo) (uid int, ok bool) { return 0, false }
