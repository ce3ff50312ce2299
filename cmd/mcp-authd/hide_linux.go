package main

import "syscall"

// hide keeps other processes of the same user out of this one: they can then read neither
// its environment nor its memory, where the secret key is, nor attach a debugger (prctl(2),
// PR_SET_DUMPABLE). A program that the gateway runs is such a process. It does not hold
// against root, and says nothing about files.
func hide() {
	// It cannot fail with this argument.
	_, _, _ = syscall.Syscall(syscall.SYS_PRCTL, syscall.PR_SET_DUMPABLE, 0, 0)
}

// hidden reports whether hide has an effect on a process of the user uid.
func hidden(uid int) bool { return uid != 0 }
