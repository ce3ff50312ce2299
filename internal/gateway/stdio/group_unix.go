//go:build unix

package stdio

import (
	"os/exec"
	"syscall"
)

// isolate makes a program the leader of a new process group. The program can then be ended with all
// that it has started, and signals to the gateway do not reach it.
func isolate(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// The group may already have ended.

func terminate(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
func kill(cmd *exec.Cmd)      { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
