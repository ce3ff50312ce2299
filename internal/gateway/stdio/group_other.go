//go:build !unix

package stdio

import "os/exec"

// This system has no process groups: processes that a program has started may outlive it.

func isolate(*exec.Cmd)       {}
func terminate(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
func kill(cmd *exec.Cmd)      { _ = cmd.Process.Kill() }
