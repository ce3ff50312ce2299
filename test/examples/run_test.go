// Package examples builds the examples and runs them with real clients, as their readers
// would.
package examples

import (
	"bufio"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/npmtest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	demotest.Cleanup()
	os.Exit(code)
}

// build builds a package, in the module that its folder belongs to.
func build(t *testing.T, folder string) (binary string) {
	t.Helper()
	binary = filepath.Join(t.TempDir(), "example")
	if out, err := exec.Command("go", "build", "-C", folder, "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", folder, err, out)
	}
	return binary
}

// program is an example that runs.
type program struct {
	Address string
	cmd     *exec.Cmd
	once    sync.Once
	ended   chan error // how, when it has

	mu    sync.Mutex // guards lines
	lines []string   // what it has printed
}

// run starts a binary on an address, until the end of the test, and waits for it.
func run(t *testing.T, binary, address string, args ...string) *program {
	t.Helper()
	p := &program{Address: address, cmd: exec.Command(binary, append([]string{"-listen", address}, args...)...)}
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
		p.ended <- p.cmd.Wait() // it has closed its output
	}()
	t.Cleanup(func() { p.stop(t) })
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if c, err := net.Dial("tcp", address); err == nil {
			c.Close()
			return p
		}
		if len(p.ended) > 0 || time.Now().After(end) {
			t.Fatalf("%s does not answer:\n%s", address, p.output())
		}
	}
}

// runReady is run for a program with sign-in of its own, which says when it is ready.
func runReady(t *testing.T, binary, address string, args ...string) *program {
	t.Helper()
	p := run(t, binary, address, args...)
	end := time.Now().Add(time.Minute)
	for ; !strings.Contains(p.output(), "is ready: http"); time.Sleep(20 * time.Millisecond) {
		if len(p.ended) > 0 || time.Now().After(end) {
			t.Fatalf("it is not ready:\n%s", p.output())
		}
	}
	return p
}

func (p *program) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.lines, "\n")
}

// stop sends SIGTERM and returns how the program ended: nil for 0.
func (p *program) stop(t *testing.T) (err error) {
	t.Helper()
	p.once.Do(func() {
		_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended; Wait tells
		kill := time.AfterFunc(time.Minute, func() { _ = p.cmd.Process.Kill() })
		defer kill.Stop()
		err = <-p.ended
	})
	return err
}

// script runs one of the TypeScript clients of test/clients, with a person who visits
// whatever it prints, and returns what it printed and how often the person was asked.
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
