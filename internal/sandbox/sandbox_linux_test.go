package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain runs the sandboxed program if the binary is started as one.
func TestMain(m *testing.M) {
	Run()
	if len(os.Args) > 2 && os.Args[1] == "program" {
		fmt.Println(programs[os.Args[2]](os.Args[3:]))
		return
	}
	os.Exit(m.Run())
}

// programs try forbidden actions and return the results.
var programs = map[string]func([]string) any{
	"open":  func(a []string) any { _, err := os.ReadFile(a[0]); return err },
	"write": func(a []string) any { return os.WriteFile(a[0], []byte("x"), 0o600) },
	"fill": func(a []string) any {
		signal.Ignore(syscall.SIGXFSZ)
		f, err := os.Create(a[0])
		for n := 0; err == nil && n < 1000; n++ {
			_, err = f.Write(make([]byte, 64<<10))
		}
		return err
	},
	"dial": func(a []string) any { _, err := net.Dial(a[0], a[1]); return err },
	"kill": func(a []string) any {
		pid, _ := strconv.Atoi(a[0])
		return syscall.Kill(pid, 0)
	},
	"x32": func([]string) any {
		_, _, err := syscall.Syscall(0x40000000|syscall.SYS_SOCKET, syscall.AF_INET, syscall.SOCK_STREAM, 0)
		return err
	},
	"escape": func([]string) any {
		if _, err := syscall.Setsid(); err != syscall.EPERM {
			return err
		}
		child := exec.Command("/bin/true")
		child.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		return child.Run()
	},
	"mount": func(a []string) any { return syscall.Mount("none", a[0], "tmpfs", 0, "") },
	"grow": func([]string) any {
		for kept := [][]byte{}; ; kept = append(kept, bytes.Repeat([]byte("x"), 1<<20)) {
			if len(kept) > 2000 {
				return nil
			}
		}
	},
	"spin": func([]string) any {
		for began := time.Now(); time.Since(began) < time.Minute; {
		}
		return nil
	},
	"calls":  makeCalls,
	"chmod":  func(a []string) any { return os.Chmod(a[0], 0o700) },
	"status": func([]string) any { b, _ := os.ReadFile("/proc/self/status"); return string(b) },
}

// run runs a program in the sandbox and returns its output.
func (p Policy) run(t *testing.T, mode string, args ...string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out, _ := p.command(self, append([]string{"program", "program", mode}, args...)).CombinedOutput()
	return strings.TrimSpace(string(out))
}

func (p Policy) command(path string, args []string) *exec.Cmd {
	name, wrapped := p.Wrap(path, args)
	c := exec.Command(name)
	c.Args = wrapped
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return c
}

func TestPrograms(t *testing.T) {
	secret, own := filepath.Join(t.TempDir(), "secret"), t.TempDir()
	if err := os.WriteFile(secret, []byte("s"), 0o644); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	unix, err := net.Listen("unix", filepath.Join(own, "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close()
	tcp := l.Addr().String()
	inside, online := Policy{Write: []string{own}, FileSize: 1 << 20}, Policy{Network: true, Read: []string{own}}
	for _, c := range []struct {
		name   string
		policy Policy
		mode   string
		args   []string
		want   string
	}{
		{"opens a file outside", inside, "open", []string{secret}, "open " + secret + ": permission denied"},
		{"reads the configuration", inside, "open", []string{"/etc/hostname"}, "permission denied"},
		{"reads what it may", Policy{Read: []string{secret}}, "open", []string{secret}, "<nil>"},
		{"reads another process", inside, "open", []string{"/proc/1/environ"}, "permission denied"},
		{"writes outside", inside, "write", []string{secret}, "permission denied"},
		{"writes where it may read", Policy{Read: []string{own}}, "write", []string{own + "/x"}, "permission denied"},
		{"writes where it may", inside, "write", []string{own + "/x"}, "<nil>"},
		{"fills the disk", inside, "fill", []string{own + "/full"}, "file too large"},
		{"connects", inside, "dial", []string{"tcp", tcp}, "socket: operation not permitted"},
		{"sends datagrams", inside, "dial", []string{"udp", "127.0.0.1:53"}, "socket: operation not permitted"},
		{"connects to a file", inside, "dial", []string{"unix", own + "/s"}, "socket: operation not permitted"},
		{"connects where it may", online, "dial", []string{"tcp", tcp}, "<nil>"},
		{"signals its parent", online, "kill", []string{strconv.Itoa(os.Getpid())}, "operation not permitted"},
		{"leaves its process group", online, "escape", nil, "operation not permitted"},
		{"mounts", online, "mount", []string{own}, "operation not permitted"},
		{"takes memory", Policy{Memory: 200 << 20}, "grow", nil, "out of memory"},
		{"has no new rights", inside, "status", nil, "NoNewPrivs:\t1\nSeccomp:\t2"},
	} {
		t.Run("SP-24 a program that "+c.name, func(t *testing.T) {
			if got := c.policy.run(t, c.mode, c.args...); !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	if runtime.GOARCH == "amd64" {
		if got := inside.run(t, "x32"); got != syscall.ENOSYS.Error() {
			t.Errorf("SP-24 by another table of system calls: got %q, want %q", got, syscall.ENOSYS)
		}
	}
}

// TestLimits: SP-24. A program cannot fork more often than its limit allows, and is killed if it uses more processor
// time than its limit.
func TestLimits(t *testing.T) {
	// If the limit has no effect, the program and its children still end.
	const forks = "i=0; while [ $i -lt 100 ]; do sleep 60 >&- 2>&- & i=$((i+1)); done"
	c := Policy{Processes: 20}.command("/bin/sh", []string{"sh", "-c", forks})
	if os.Getuid() == 0 {
		root := Policy{Processes: 20}.command("/bin/true", []string{"true"})
		if out, err := root.CombinedOutput(); err == nil || !strings.Contains(string(out), "root may have any number") {
			t.Errorf("a limit that does not hold must be an error: %v %s", err, out)
		}
		c.SysProcAttr.Credential = &syscall.Credential{Uid: 65534, Gid: 65534}
	}
	var out bytes.Buffer
	c.Stdout, c.Stderr, c.WaitDelay = &out, &out, time.Second
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	end := func() { _ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	deadline := time.AfterFunc(time.Minute, end)
	_ = c.Wait() // the error is about the processes left behind
	deadline.Stop()
	end()
	if got := out.String(); !strings.Contains(got, "fork") {
		t.Errorf("it forks 100 times: got %q, want that it cannot fork", got)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	spin := Policy{CPU: time.Second}.command(self, []string{"program", "program", "spin"})
	var exit *exec.ExitError
	if err := spin.Run(); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("it computes without end: got %v, want that it was killed", err)
	}
}

// TestRefused: SP-24. A program that cannot be sandboxed does not run.
func TestRefused(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		name   string
		policy Policy
		path   string
		want   string
	}{
		{"a directory that is not there", Policy{Write: []string{dir + "/x"}}, "/bin/true", "cannot be found"},
		{"a relative path", Policy{Read: []string{"x"}}, "/bin/true", `"x" is not an absolute path`},
		{"no program", Policy{}, dir + "/none", "permission denied|no such file|not among the files"},
	} {
		t.Run("SP-24 "+c.name, func(t *testing.T) {
			out, err := c.policy.command(c.path, []string{"x"}).CombinedOutput()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != exitRefused {
				t.Errorf("got %v, want %d", err, exitRefused)
			}
			if !containsAny(string(out), strings.Split(c.want, "|")) {
				t.Errorf("got %q, want %q", out, c.want)
			}
		})
	}
	if err := (&Policy{}).Check(1); (err != nil) != (len((&Policy{}).Lacking()) > 0) {
		t.Errorf("a lack of %s must be an error: %v", Kernel(), err)
	}
}

func containsAny(s string, parts []string) bool {
	for _, p := range parts {
		if strings.Contains(s, p) {
			return true
		}
	}
	return false
}
