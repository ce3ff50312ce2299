package process

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mcp-authd/mcp-authd/internal/testkit/program"
)

// supervisedScript, if set, makes the test program supervise this script, and adopt orphans as PID
// 1 does.
const supervisedScript = "MCP_AUTHD_TEST_SUPERVISED"

// orphan is a script that leaves a child behind, and continues once that child has been reaped.
const orphan = `pid=$(sh -c 'sleep 0 >/dev/null 2>&1 & echo $!')
while [ -e /proc/$pid ]; do sleep 0.05; done
echo the orphan is reaped >&2
`

func TestSupervise(t *testing.T) {
	if script := os.Getenv(supervisedScript); script != "" {
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			t.Fatal(err)
		}
		code, err := supervise("/bin/sh", []string{"sh", "-c", script})
		if err != nil {
			t.Fatal(err)
		}
		os.Exit(code)
	}
	for _, c := range []struct {
		name, script string
		signal       syscall.Signal // sent after the script's first line
		code         int
	}{
		{name: "reaps an orphan", script: orphan + "exit 7", code: 7},
		{name: "well", script: "exit 0"},
		{name: "killed", script: "kill -KILL $$", code: 128 + 9},
		{name: "resumes after Ctrl-Z", script: "kill -TSTP $$; exit 5", code: 5},
		{
			name: "forwards", signal: syscall.SIGTERM, code: 9,
			script: "trap 'exit 9' TERM; echo ready; while :; do sleep 0.05; done",
		},
		{
			name: "forwards a hangup", signal: syscall.SIGHUP, code: 8,
			script: "trap 'exit 8' HUP; echo ready; while :; do sleep 0.05; done",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestSupervise$")
			cmd.Env = append(os.Environ(), supervisedScript+"="+c.script)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewReader(out)
			if c.signal != 0 {
				if line, err := lines.ReadString('\n'); line != "ready\n" {
					t.Fatal(line, err)
				}
				if err := cmd.Process.Signal(c.signal); err != nil {
					t.Fatal(err)
				}
			}
			rest, _ := io.ReadAll(lines)
			_ = cmd.Wait() // the exit code is checked
			if got := cmd.ProcessState.ExitCode(); got != c.code {
				t.Errorf("exit code %d, want %d; output %q", got, c.code, rest)
			}
		})
	}
}

// TestInit starts the program as PID 1, as a container does.
func TestInit(t *testing.T) {
	namespace := []string{"unshare", "--pid", "--fork", "--kill-child", "--mount-proc"}
	if os.Geteuid() != 0 {
		namespace = slices.Insert(namespace, 1, "--user", "--map-root-user")
	}
	if out, err := exec.Command(namespace[0], append(namespace[1:], "true")...).CombinedOutput(); err != nil {
		t.Skipf("a PID namespace must be allowed: %v %s", err, out)
	}
	authd := program.Authd(t) // builds it, which may take longer than the run
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	args := append(namespace[1:], authd, "protect", "--listen", "127.0.0.1:0", "--data", t.TempDir(),
		"--", "sh", "-c", orphan+"exit 1")
	cmd := exec.CommandContext(ctx, namespace[0], args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &out, time.Second
	_ = cmd.Run() // the exit code is checked
	got, said := cmd.ProcessState.ExitCode(), out.String()
	if got != 1 || !strings.Contains(said, "the orphan is reaped") {
		t.Errorf("exit code %d, want %d; output:\n%s", got, 1, said)
	}
}
