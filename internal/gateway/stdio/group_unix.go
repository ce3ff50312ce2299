//go:build unix

package stdio

import (
	"os/exec"
	"syscall"
)

// isolate makes a program the head of its own process group, so that everything it starts
// can be ended with it, and signals to the gateway do not reach it.
func isolate(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// The group may be gone already, which is what is wanted.

func terminate(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
func kill(cmd *exec.Cmd)      { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
