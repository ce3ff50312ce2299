//go:build unix

package pgtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

// Standby starts a streaming standby of a server of StartOwn. It uses name as application name, for
// synchronous_standby_names. It ends with the process.
func (s *Server) Standby(tb testing.TB, name string) *Server {
	tb.Helper()
	out, err := settle("", filepath.Dir(s.home.dir), s.home.settings, func(h *home) error { return h.copyOf(s, name) })
	if err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	tb.Cleanup(func() { runtime.KeepAlive(out) })
	return out
}

func (h *home) copyOf(s *Server, name string) error {
	return h.run("pg_basebackup", "-d",
		fmt.Sprintf("host=%s port=%s user=postgres application_name=%s", s.url.Hostname(), s.url.Port(), name),
		"-D", h.data(), "-X", "stream", "-c", "fast", "-R", "--no-sync")
}

// Follow turns a stopped server into a standby of another server, on its old port. Data that only
// the stopped server had committed is lost.
func (s *Server) Follow(primary *Server, name string) error {
	if err := os.RemoveAll(s.home.data()); err != nil {
		return err
	}
	if err := s.home.copyOf(primary, name); err != nil {
		return err
	}
	return s.Start()
}

// Promote makes a standby the primary, and returns when it takes writes. A standby that still applies
// received changes may cancel the statement, so Promote repeats it.
func (s *Server) Promote() (err error) {
	wait.Poll(wait.Bound, func() bool {
		err = s.Exec("SELECT pg_promote() WHERE pg_is_in_recovery()")
		return err == nil || !strings.Contains(err.Error(), "SQLSTATE 40001")
	})
	return err
}

// Pause stops every process of the server, as if its machine hung: connections stay open but get no
// answer. Resume must be called before the test ends.
func (s *Server) Pause() error {
	postmaster, err := s.postmaster()
	if err != nil {
		return err
	}
	// Once the postmaster has stopped, it starts no further processes.
	if err := signal(syscall.SIGSTOP, stopped, postmaster); err != nil {
		return err
	}
	children, err := childrenOf(postmaster)
	if err != nil {
		return err
	}
	return signal(syscall.SIGSTOP, stopped, children...)
}

// Resume continues a paused server, which then handles the requests that arrived meanwhile. The postmaster, which
// takes new connections and cancel requests, continues last, when the other processes are idle.
func (s *Server) Resume() error {
	postmaster, err := s.postmaster()
	if err != nil {
		return err
	}
	children, err := childrenOf(postmaster)
	if err != nil {
		return err
	}
	if err := signal(syscall.SIGCONT, waiting, children...); err != nil {
		return err
	}
	return syscall.Kill(postmaster, syscall.SIGCONT)
}

func (s *Server) postmaster() (pid int, err error) {
	b, err := os.ReadFile(filepath.Join(s.home.data(), "postmaster.pid"))
	if err != nil {
		return 0, err
	}
	first, _, _ := strings.Cut(string(b), "\n")
	return strconv.Atoi(first)
}

func childrenOf(process int) (pids []int, err error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%[1]d/task/%[1]d/children", process))
	if err != nil {
		return nil, err
	}
	for _, field := range strings.Fields(string(b)) {
		pid, err := strconv.Atoi(field)
		if err != nil {
			return nil, err
		}
		pids = append(pids, pid)
	}
	return pids, nil
}

// These are process states (proc(5)).
const (
	stopped = "T"
	waiting = "S"
	ended   = "ZX"
)

// signal sends a signal to processes, and waits until each is in the state or has ended.
func signal(sig syscall.Signal, state string, pids ...int) error {
	for _, pid := range pids {
		if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
	}
	return wait.Retry(wait.Bound, func() error {
		for _, pid := range pids {
			stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
				continue
			}
			if err != nil {
				return err
			}
			_, after, _ := strings.Cut(string(stat), ") ") // after the name, which has no parenthesis
			if got, _, _ := strings.Cut(after, " "); !strings.Contains(state+ended, got) {
				return fmt.Errorf("process %d is in the state %s, want %s", pid, got, state)
			}
		}
		return nil
	})
}
