package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

// spentIn names the environment variable with the directory for the processor times of test programs.
const spentIn = "TEST_REPORT_SPENT"

// spent is the processor time of a test program, including the programs that it started.
type spent struct {
	Dir   string // the directory of the package
	Total time.Duration
	Tests map[string]time.Duration // by top-level test; tests that run together share the time
}

// pressure names the environment variable with a command that runs a test program with fewer resources,
// such as "taskset -c 0" (test/steady.sh).
const pressure = "TEST_PRESSURE"

// measure runs a test program, writes its processor time and returns its exit code.
func measure(command []string) int {
	command = append(strings.Fields(os.Getenv(pressure)), command...)
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdin, cmd.Stderr = os.Stdin, os.Stderr
	if os.Getenv("CGO_ENABLED") != "0" {
		// Programs that tests build share compiled packages with internal/testkit/program. Tests of
		// a release build it in the environment of the release.
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath -buildvcs=false")
	}
	from, to, err := os.Pipe()
	if err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		return 1
	}
	cmd.Stdout = to
	// go test sends SIGQUIT to a program that hangs, to see its stacks.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGQUIT, syscall.SIGTERM, os.Interrupt)
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		return 1
	}
	go func() {
		for s := range signals {
			_ = cmd.Process.Signal(s) // the program may have ended
		}
	}()
	m := &meter{pid: cmd.Process.Pid, tests: map[string]time.Duration{}}
	to.Close()
	m.watch(from, os.Stdout)
	err = cmd.Wait()
	usage := cmd.ProcessState
	m.write(max(usage.UserTime()+usage.SystemTime(), m.total))
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() >= 0 {
		return exit.ExitCode()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		return 1
	}
	return 0
}

// meter divides the processor time of a test program among the running tests.
type meter struct {
	pid     int
	total   time.Duration
	running []string
	tests   map[string]time.Duration
}

// edge matches a line that says that a top-level test starts, pauses, continues or ends. Go writes a
// control character before it, for test2json.
var edge = regexp.MustCompile(`^\x16?(?:=== (RUN|PAUSE|CONT)  +|--- (PASS|FAIL|SKIP): )(Test[^/ \n]*)(?: \(.*)?\n$`)

// watch copies the output of a test program and reads its processor time at each edge.
func (m *meter) watch(from io.ReadCloser, to io.Writer) {
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadString('\n')
		if e := edge.FindStringSubmatch(line); e != nil {
			m.edge(e[1], e[3])
		}
		if line == "PASS\n" || line == "FAIL\n" {
			// The program ends. A process that a test has left behind may hold the output
			// indefinitely.
			time.AfterFunc(wait.Bound, func() { from.Close() })
		}
		io.WriteString(to, line)
		if err != nil {
			return
		}
	}
}

func (m *meter) edge(what, test string) {
	total := max(processorTime(m.pid), m.total)
	for _, t := range m.running {
		m.tests[t] += (total - m.total) / time.Duration(len(m.running))
	}
	m.total = total
	if what == "RUN" || what == "CONT" {
		m.running = append(m.running, test)
		return
	}
	for i, t := range m.running {
		if t == test {
			m.running = append(m.running[:i], m.running[i+1:]...)
			return
		}
	}
}

func (m *meter) write(total time.Duration) {
	dir := os.Getenv(spentIn)
	here, err := os.Getwd()
	if err != nil || dir == "" {
		return
	}
	b, err := json.Marshal(spent{Dir: here, Total: total, Tests: m.tests})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.json", os.Getpid())), b, 0o600)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
	}
}
