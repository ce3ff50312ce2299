package stdio

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/sandbox"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

// TestSandboxed: SP-24. A program in a sandbox works as an MCP server. It is ended with everything
// that it has started, even if it ignores signals.
func TestSandboxed(t *testing.T) {
	for _, mode := range []string{"good", "deaf"} {
		s := serve(t, mode, Config{Sandbox: &sandbox.Policy{FileSize: 1 << 20, OpenFiles: 256}})
		h := s.open("2025-11-25")
		pid := int(s.post(toolCall("1", "echo", ""), h...).result(t)["pid"].(float64))
		child := int(s.post(toolCall("2", "child", ""), h...).result(t)["child"].(float64))
		if !alive(pid) || !alive(child) {
			t.Fatal("they do not run")
		}
		s.do(t.Context(), "DELETE", "", h...)
		wait.Until(t, "both have ended", func() bool { return !alive(pid) && !alive(child) })
	}
}

// TestSandboxLimits: SP-24, RS-110. If a limit ends a program, all its sessions learn it, and the
// next session starts it again. If a limit only causes an error, the program continues.
func TestSandboxLimits(t *testing.T) {
	const again = `{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-11-25"}}`
	for tool, c := range map[string]struct {
		policy sandbox.Policy
		log    string
	}{
		// Without memory, Go exits with 2, and with the race detector, which also needs memory,
		// with 66.
		"grow": {sandbox.Policy{Memory: 1 << 30}, "exit status "},
		"spin": {sandbox.Policy{CPU: time.Second}, "signal: killed"},
	} {
		t.Run("SP-24 killed: "+tool, func(t *testing.T) {
			s := serve(t, "good", Config{Shared: true, Sandbox: &c.policy})
			headers := [][]string{s.open("2025-11-25"), s.open("2025-11-25", "Who", "bob")}
			waiting := make(chan *answer)
			go func() { waiting <- s.post(toolCall(`"w"`, "hang", ""), headers[1]...) }()
			wait.Until(t, "bob waits", func() bool { return s.sessionOf(headers[1]).link.waiting() == 1 })
			for _, a := range []*answer{s.post(toolCall("1", tool, ""), headers[0]...), <-waiting} {
				if last := a.events[len(a.events)-1].data; !strings.Contains(last, `"error":{"code":-32603`) {
					t.Errorf("a call of a program that was killed got %s", last)
				}
			}
			for _, h := range headers {
				wait.Until(t, "the session is gone",
					func() bool { return s.post(toolCall("1", "echo", ""), h...).status == 404 })
			}
			wait.Until(t, "it is started again", func() bool {
				return s.post(again).status == 200
			})
			if log := s.log.String(); !strings.Contains(log, "a program has ended by itself") ||
				!strings.Contains(log, c.log) {
				t.Errorf("the log does not say %q: %s", c.log, log)
			}
		})
	}
	dir := t.TempDir()
	s := serve(t, "good", Config{Sandbox: &sandbox.Policy{FileSize: 1 << 20, OpenFiles: 64, Write: []string{dir}}})
	h := s.open("2025-11-25")
	full := s.post(toolCall("1", "fill", fmt.Sprintf(`,"arguments":{"path":%q}`, dir+"/full")), h...).result(t)
	if info, err := os.Stat(dir + "/full"); err != nil || info.Size() != 1<<20 ||
		!strings.Contains(full["error"].(string), "file too large") {
		t.Errorf("SP-24 a file without end: got %v, %v", full, err)
	}
	if files := s.post(toolCall("2", "files", ""), h...).result(t); files["n"].(float64) > 64 ||
		!strings.Contains(files["error"].(string), "too many open files") {
		t.Errorf("SP-24 files without number: got %v", files)
	}
	if a := s.post(toolCall("3", "echo", ""), h...); a.result(t)["pid"] == nil {
		t.Errorf("SP-24 after a limit: got %d %s", a.status, a.body)
	}
}

// TestSandboxForks: SP-24. A program that forks too often is limited, and ends with its session,
// even if it and its children ignore signals and the end of input.
func TestSandboxForks(t *testing.T) {
	const most = 30
	const script = `trap "" TERM INT HUP PIPE; exec 3>&2 2>/dev/null
		(i=0; while [ $i -lt 150 ]; do sleep 300 & i=$((i+1)); done); echo has forked >&3; sleep 300; sleep 300`
	c := Config{Command: []string{"/bin/sh", "-c", script}, Sandbox: &sandbox.Policy{Processes: most}}
	mine := 4711
	if os.Geteuid() == 0 { // such a limit does not apply to root
		c.User = fmt.Sprintf("%d:%d", mine, mine)
	} else {
		mine = os.Getuid()
	}
	before := tasks(mine)
	s := serveCommand(t, c)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	go s.do(ctx, "POST",
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}`)
	wait.Until(t, "it has forked", func() bool { return strings.Contains(s.log.String(), "has forked") })
	if n := tasks(mine) - before; n < most-5 || n > most+1 {
		t.Errorf("SP-24: it has %d processes, want %d and itself at most", n, most)
	}
	leave()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	wait.Until(t, "all have ended", func() bool { return tasks(mine) <= before })
}

// tasks counts the processes of a user.
func tasks(uid int) (n int) {
	found, _ := filepath.Glob("/proc/[0-9]*/status")
	for _, path := range found {
		b, err := os.ReadFile(path)
		status := string(b)
		if err == nil && strings.Contains(status, fmt.Sprintf("\nUid:\t%d\t", uid)) &&
			!strings.Contains(status, "State:\tZ") {
			n++
		}
	}
	return n
}

// TestSandboxBestEffort: SP-24. With best_effort, an unsupported restriction is not an error. The
// log names it, and all other restrictions apply.
func TestSandboxBestEffort(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("s"), 0o644); err != nil {
		t.Fatal(err)
	}
	strict := sandbox.Policy{Processes: 1000, FileSize: 1 << 20}
	if err := strict.Check(0); err == nil || !strings.Contains(err.Error(), "root may have any number") {
		t.Errorf("a limit that does not bind root: got %v", err)
	}
	relaxed := strict
	relaxed.BestEffort = true
	if err := relaxed.Check(0); err != nil {
		t.Errorf("with best_effort: got %v", err)
	}
	s := serve(t, "good", Config{Sandbox: &relaxed})
	h := s.open("2025-11-25")
	got := s.post(toolCall("1", "fill", fmt.Sprintf(`,"arguments":{"path":%q}`, secret)), h...).result(t)
	if len(relaxed.Lacking()) == 0 && !strings.Contains(got["error"].(string), "permission denied") {
		t.Errorf("with best_effort, it writes to a file outside: %v", got)
	}
	for _, missing := range relaxed.Lacking() {
		if !strings.Contains(s.log.String(), missing) {
			t.Errorf("the log does not say that %s", missing)
		}
	}
	if said := strings.Contains(s.log.String(), "weaker than it was asked for"); said != (len(relaxed.Lacking()) > 0) {
		t.Errorf("the log says that it is weaker: %v, and it lacks %q", said, relaxed.Lacking())
	}
}

// TestSandboxRefused: SP-24. A program that cannot be sandboxed does not run, and the log has the
// reason.
func TestSandboxRefused(t *testing.T) {
	s := serve(t, "good", Config{Sandbox: &sandbox.Policy{Write: []string{filepath.Join(t.TempDir(), "none")}}})
	a := s.post(`{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-11-25"}}`)
	if !strings.Contains(a.body, "-32603") {
		t.Errorf("got %d %s", a.status, a.body)
	}
	wait.Until(t, "the log says why", func() bool { return strings.Contains(s.log.String(), "cannot be found") })
	if _, err := New(Config{Command: []string{"true"}, Sandbox: &sandbox.Policy{Read: []string{"x"}}}); err == nil ||
		!strings.Contains(err.Error(), "absolute") {
		t.Errorf("a relative path: got %v", err)
	}
}
