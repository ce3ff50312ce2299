// Package examples builds the examples and runs them with real clients, like their readers.
package examples

import (
	"bufio"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/npmtest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

type running struct {
	Address string
	cmd     *exec.Cmd
	once    sync.Once
	ended   chan error // gets the exit status when the program ends

	mu    sync.Mutex // guards lines
	lines []string
}

// run starts a binary on an address and waits for it. It runs until the end of the test.
func run(t *testing.T, binary, address string, args ...string) *running {
	t.Helper()
	p := &running{Address: address, cmd: exec.Command(binary, append([]string{"-listen", address}, args...)...)}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.cmd.Stderr = p.cmd.Stdout
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.ended = make(chan error, 1)
	go func() {
		for s := bufio.NewScanner(out); s.Scan(); {
			p.mu.Lock()
			p.lines = append(p.lines, s.Text())
			p.mu.Unlock()
		}
		p.ended <- p.cmd.Wait() // the program has closed its output
	}()
	t.Cleanup(func() { p.stop(t) })
	p.await(t, address+" answers", func() bool {
		c, err := net.Dial("tcp", address)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	return p
}

// runReady is run for a program with its own sign-in, which reports when it is ready.
func runReady(t *testing.T, binary, address string, args ...string) *running {
	t.Helper()
	p := run(t, binary, address, args...)
	p.await(t, "it says that it is ready", func() bool { return strings.Contains(p.output(), "is ready: http") })
	return p
}

// await waits until is returns true. It fails the test if the program ends first.
func (p *running) await(t *testing.T, what string, is func() bool) {
	t.Helper()
	ok := false
	wait.Poll(wait.Bound, func() bool {
		ok = is()
		return ok || len(p.ended) > 0
	})
	if !ok {
		t.Fatalf("waited in vain until %s:\n%s", what, p.output())
	}
}

func (p *running) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.lines, "\n")
}

// stop sends SIGTERM and returns the program's exit status: nil for 0.
func (p *running) stop(t *testing.T) (err error) {
	t.Helper()
	p.once.Do(func() {
		_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended; Wait returns the error
		kill := time.AfterFunc(time.Minute, func() { _ = p.cmd.Process.Kill() })
		defer kill.Stop()
		err = <-p.ended
	})
	return err
}

// script runs one of the TypeScript clients of test/clients, with a user who visits each URL that
// it prints. It returns the output and the number of visits.
func script(t *testing.T, p *demotest.Person, name, url string, steps ...string) (out string, visits int) {
	t.Helper()
	cmd := npmtest.Command(t, "node", append([]string{"clients/" + name, url, ""}, steps...)...)
	var printed strings.Builder
	cmd.Stdout = &printed
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill := time.AfterFunc(5*time.Minute, func() { _ = cmd.Process.Kill() })
	defer kill.Stop()
	var said []string
	for s := bufio.NewScanner(stderr); s.Scan(); {
		said = append(said, s.Text())
		link, ok := strings.CutPrefix(s.Text(), "visit ")
		if !ok {
			continue
		}
		visits++
		back, err := p.Visit(link)
		if err != nil {
			t.Errorf("sign-in: %v", err)
			break
		}
		resp, err := http.Get(back.String())
		if err != nil {
			t.Errorf("callback: %v", err)
			break
		}
		resp.Body.Close()
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%s: %v\n%s", name, err, strings.Join(said, "\n"))
	}
	return printed.String(), visits
}
