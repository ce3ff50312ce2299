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
	"time"
)

// Standby starts a streaming standby of a server of StartOwn, which names itself name, so
// that synchronous_standby_names can name it. It ends with the process.
func (s *Server) Standby(tb testing.TB, name string) *Server {
	tb.Helper()
	out, err := settle(filepath.Dir(s.home.dir), s.home.settings, func(h *home) error { return h.copyOf(s, name) })
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

// Follow makes a server that is stopped a standby of another one, on its old port: what it
// had committed, and the other one had not, is gone.
func (s *Server) Follow(primary *Server, name string) error {
	if err := os.RemoveAll(s.home.data()); err != nil {
		return err
	}
	if err := s.home.copyOf(primary, name); err != nil {
		return err
	}
	return s.Start()
}

// Promote makes a standby the primary, and returns when it takes writes.
// While a standby still applies what it has received, that can cancel the statement, which waits.
func (s *Server) Promote() error {
	err := s.Exec("SELECT pg_promote()")
	for range 10 {
		switch {
		case err == nil || !strings.Contains(err.Error(), "SQLSTATE 40001"):
			return err
		case s.Exec("DO $$ BEGIN ASSERT NOT pg_is_in_recovery(); END $$") == nil:
			return nil
		}
		time.Sleep(time.Second)
		err = s.Exec("SELECT pg_promote() WHERE pg_is_in_recovery()")
	}
	return err
}

// Pause stops every process of the server, as when its machine hangs: connections stay,
// and nothing answers. Resume is due before the test ends.
func (s *Server) Pause() error {
	return s.signal(syscall.SIGSTOP,
		func(postmaster int, children []int) []int { return append([]int{postmaster}, children...) })
}

// Resume lets a paused server go on with what it was sent meanwhile. Those who take new
// connections come last, and so do the requests to cancel something.
func (s *Server) Resume() error {
	return s.signal(syscall.SIGCONT, func(postmaster int, children []int) []int { return append(children, postmaster) })
}

func (s *Server) signal(sig syscall.Signal, order func(postmaster int, children []int) []int) error {
	b, err := os.ReadFile(filepath.Join(s.home.data(), "postmaster.pid"))
	if err != nil {
		return err
	}
	first, _, _ := strings.Cut(string(b), "\n")
	postmaster, err := strconv.Atoi(first)
	if err != nil {
		return err
	}
	b, err = os.ReadFile(fmt.Sprintf("/proc/%[1]d/task/%[1]d/children", postmaster))
	if err != nil {
		return err
	}
	var children []int
	for _, field := range strings.Fields(string(b)) {
		pid, err := strconv.Atoi(field)
		if err != nil {
			return err
		}
		children = append(children, pid)
	}
	for _, pid := range order(postmaster, children) {
		if pid == postmaster {
			time.Sleep(100 * time.Millisecond) // for those before it, and those that it started last
		}
		if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
	}
	return nil
}
