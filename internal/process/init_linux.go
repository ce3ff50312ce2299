package process

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// BecomeInit runs the command in a child process if this process has PID 1, as in a container
// without an init. The kernel gives orphans to PID 1: here, processes that programs of MCP servers
// leave behind. The command itself must not wait for them, because os/exec would then miss its own
// children.
func BecomeInit() {
	if os.Getpid() != 1 {
		return
	}
	Hide() // this process's environment contains the same secrets
	code, err := supervise("/proc/self/exe", os.Args)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mcp-authd: PID 1 cannot start a child process, so orphans stay as zombies:", err)
		return
	}
	os.Exit(code)
}

// supervise runs a command, forwards signals to it, and reaps every child until the command ends.
// It returns the command's exit code, which is 128+n for signal n.
func supervise(path string, argv []string) (int, error) {
	signals := forwarded()
	pid, err := syscall.ForkExec(path, argv, &syscall.ProcAttr{
		Env: os.Environ(), Files: []uintptr{0, 1, 2}, Sys: ownGroup(),
	})
	if err != nil {
		return 0, err
	}
	go func() {
		for s := range signals {
			_ = syscall.Kill(pid, s.(syscall.Signal)) // the child may have ended, which wait notices
		}
	}()
	return reap(pid)
}

// reap reaps children until the process pid has ended.
func reap(pid int) (int, error) {
	for {
		var status syscall.WaitStatus
		ended, err := syscall.Wait4(-1, &status, syscall.WUNTRACED, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return 0, err
		case ended != pid:
		case status.Stopped() && status.StopSignal() == syscall.SIGTSTP:
			_ = syscall.Kill(-pid, syscall.SIGCONT) // Ctrl-Z: no shell could resume it
		case status.Exited():
			return status.ExitStatus(), nil
		case status.Signaled():
			return 128 + int(status.Signal()), nil
		}
	}
}

// forwarded relays the signals that are meant for the command. It leaves ignored ones alone, so
// that the command ignores them too.
func forwarded() <-chan os.Signal {
	c := make(chan os.Signal, 64)
	for s := syscall.Signal(1); s <= 64; s++ {
		if s != syscall.SIGCHLD && s != syscall.SIGURG && !signal.Ignored(s) { // the runtime preempts by SIGURG
			signal.Notify(c, s)
		}
	}
	return c
}

// ownGroup gives the command a separate process group, so that Ctrl-C reaches it once, and hands it
// the terminal if this process has it.
func ownGroup() *syscall.SysProcAttr {
	group, err := unix.IoctlGetInt(0, unix.TIOCGPGRP) // fails unless stdin is the controlling terminal
	return &syscall.SysProcAttr{Setpgid: true, Foreground: err == nil && group == syscall.Getpgrp(), Ctty: 0}
}
