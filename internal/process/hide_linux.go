package process

import "syscall"

// Hide isolates this process from other processes of the same user. They can then neither read its
// environment or memory, which contain the master key, nor attach a debugger (prctl(2),
// PR_SET_DUMPABLE). A program that the gateway runs is such a process. It does not protect against
// root, and does not affect files.
func Hide() {
	// It cannot fail with this argument.
	_, _, _ = syscall.Syscall(syscall.SYS_PRCTL, syscall.PR_SET_DUMPABLE, 0, 0)
}

// Hidden reports whether Hide has an effect on a process of the user uid.
func Hidden(uid int) bool { return uid != 0 }
