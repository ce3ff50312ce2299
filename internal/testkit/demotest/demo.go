// Package demotest runs the demo of the real binary for tests, and plays the user who signs in.
package demotest

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/testkit/audittest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/failure"
	"github.com/mcp-authd/mcp-authd/internal/testkit/logtest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/program"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
	"github.com/mcp-authd/mcp-authd/internal/visit"
)

// Person is a user with a browser that submits forms and keeps cookies.
type Person = visit.Person

// NewPerson returns a user with a fresh browser.
func NewPerson(username, password string) *Person { return visit.NewPerson(username, password) }

// Options change how the demo runs.
type Options struct {
	Args []string // additional arguments, such as "--data", dir
	Env  []string // additional environment, such as "MCP_AUTHD_TOKENS_ACCESS_TTL=15s"
	Host string   // issuer host of StartGateway and StartServer; default 127.0.0.1; passkeys need a name
}

// Demo is a running demo.
type Demo struct {
	Issuer   string `json:"issuer"`
	MCPURL   string `json:"mcp_url"`
	Username string `json:"username"`
	Password string `json:"password"`
	Config   string `json:"-"` // configuration file of StartGateway

	cmd  *exec.Cmd
	log  *logtest.Buffer
	once sync.Once
	err  error
}

// Person returns the demo user with a fresh browser.
func (d *Demo) Person() *Person { return NewPerson(d.Username, d.Password) }

// Start runs the demo on a free port and waits until it is ready. The demo ends with the test.
func Start(tb testing.TB, o Options) *Demo {
	tb.Helper()
	d := newDemo(tb, o, "demo", "--listen", "127.0.0.1:0", "--json")
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := d.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { d.Stop(tb) })
	ready := make(chan error, 1)
	go func() {
		line, err := bufio.NewReader(out).ReadBytes('\n')
		if err == nil {
			err = json.Unmarshal(line, d)
		}
		ready <- err
	}()
	select {
	case err := <-ready:
		if err != nil {
			tb.Fatalf("demo did not get ready: %v\n%s", err, d.log)
		}
	case <-time.After(wait.Bound):
		tb.Fatalf("demo did not get ready in a minute\n%s", d.log)
	}
	return d
}

func newDemo(tb testing.TB, o Options, args ...string) *Demo {
	tb.Helper()
	d := &Demo{log: &logtest.Buffer{}, cmd: exec.Command(program.Authd(tb), append(args, o.Args...)...)}
	d.cmd.Env, d.cmd.Stderr = append(os.Environ(), o.Env...), d.log
	failure.Log(tb, args[0]+".log", d.Log)
	return d
}

// Stop sends SIGTERM. It fails the test unless the demo exits with 0.
func (d *Demo) Stop(tb testing.TB) {
	tb.Helper()
	d.once.Do(func() {
		_ = d.cmd.Process.Signal(syscall.SIGTERM) // it may have ended; Wait returns the error
		d.err = d.wait()
	})
	if d.err != nil {
		tb.Errorf("demo did not exit with 0: %v\n%s", d.err, d.Log())
	}
	audittest.Read(tb).Check(tb, d.Log())
}

// Kill ends the demo with SIGKILL, like a power failure.
func (d *Demo) Kill() {
	d.once.Do(func() {
		_ = d.cmd.Process.Kill()
		_ = d.cmd.Wait() // being killed is not an error
	})
}

func (d *Demo) wait() error {
	done := make(chan error, 1)
	go func() { done <- d.cmd.Wait() }()
	ctx, cancel := context.WithTimeout(context.Background(), wait.Bound)
	defer cancel()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		_ = d.cmd.Process.Kill()
		return ctx.Err()
	}
}

// Log returns the log so far.
func (d *Demo) Log() string { return d.log.String() }
