//go:build release

package release

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/testkit/logtest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

// machine is a booted Debian with systemd: a container with this machine's files and network.
type machine struct {
	t      *testing.T
	root   string // its root directory
	leader string // process id of its systemd
}

// denied matches errors of mount and unshare about missing permissions, or about a file system that
// the kernel does not support.
var denied = regexp.MustCompile(`(?i)must be superuser|permission denied|operation not permitted|unknown filesystem type`)

// bootable skips the test if this machine cannot boot a systemd: if processes get no namespaces, or
// may not create control groups.
func bootable(t *testing.T) {
	t.Helper()
	cmd := command(t, "unshare", "--mount", "--pid", "--uts", "--ipc", "--cgroup", "--fork", "--mount-proc",
		"sh", "-ec", `mount -t cgroup2 cgroup2 /mnt; mkdir "/mnt/$1"; rmdir "/mnt/$1"`,
		"sh", fmt.Sprintf("release-test-%d", os.Getpid()))
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Skipf("not tested here: no systemd can be booted in a container of this machine (%v: %s); run it as root, "+
			"outside a container", err, strings.TrimSpace(string(out)))
	}
}

// boot starts a machine that ends with the test.
func boot(t *testing.T) *machine {
	t.Helper()
	m := &machine{t: t, root: layered(t)}
	bootable(t)
	// Indexing all manual pages after each installation would take longer than the installation.
	if err := os.Remove(filepath.Join(m.root, "var/lib/man-db/auto-update")); err != nil &&
		!errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	var log logtest.Buffer
	// basic.target is systemd without the services of this machine.
	cmd := exec.Command("systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--console=pipe",
		fmt.Sprintf("--machine=release-test-%d", os.Getpid()), "--directory", m.root, "--boot", "--",
		"--unit=basic.target")
	cmd.Env = append(os.Environ(), "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1")
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	gone := make(chan error, 1)
	go func() { gone <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // an orderly shutdown; it may have ended
		select {
		case <-gone:
		case <-time.After(wait.Bound):
			_ = cmd.Process.Kill()
			<-gone
		}
	})
	children := fmt.Sprintf("/proc/%d/task/%[1]d/children", cmd.Process.Pid)
	wait.Success(t, "systemd is up", func() error {
		select {
		case err := <-gone:
			gone <- err
			t.Fatalf("DL-04: systemd cannot be booted here: %v\n%s", err, &log)
		default:
		}
		if b, err := os.ReadFile(children); err == nil {
			m.leader = strings.TrimSpace(string(b))
		}
		if m.leader == "" {
			return fmt.Errorf("it has not begun\n%s", &log)
		}
		state, _ := m.command("systemctl", "is-system-running").CombinedOutput() // it fails during the start
		if is := strings.TrimSpace(string(state)); is != "running" {
			return fmt.Errorf("it is %q\n%s", is, &log)
		}
		return nil
	})
	return m
}

func (m *machine) command(args ...string) *exec.Cmd {
	return exec.CommandContext(m.t.Context(), "nsenter",
		append([]string{"--target", m.leader, "--all", "--wd=/", "--"}, args...)...)
}

// run runs a command in the machine and returns its output. The command must succeed.
func (m *machine) run(args ...string) string {
	m.t.Helper()
	out, err := m.command(args...).CombinedOutput()
	if err != nil {
		m.t.Fatalf("DL-04: %s: %v\n%s\n%s", strings.Join(args, " "), err, out, m.journal())
	}
	return string(out)
}

// journal returns the log of the service.
func (m *machine) journal() string {
	out, _ := m.command("journalctl", "--no-pager", "--output=cat", "--unit=mcp-authd").CombinedOutput()
	return string(out)
}

// String returns the journal, for messages.
func (m *machine) String() string { return m.journal() }

func (m *machine) put(name string, mode os.FileMode, content []byte) {
	m.t.Helper()
	path := filepath.Join(m.root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(path, content, mode); err != nil {
		m.t.Fatal(err)
	}
}

// layered returns a copy of this machine's root directory. Changes to it are lost at the end of the
// test.
func layered(t *testing.T) string {
	t.Helper()
	dir := small(t, "2g")
	for _, name := range []string{"upper", "work", "root"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	root := filepath.Join(dir, "root")
	mount(t, "-t", "overlay", "overlay", "-o",
		fmt.Sprintf("lowerdir=/,upperdir=%s/upper,workdir=%s/work", dir, dir), root)
	return root
}

// small returns a file system of the given size in memory.
func small(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	mount(t, "-t", "tmpfs", "-o", "mode=0755,size="+size, "tmpfs", dir)
	return dir
}

// mount mounts a file system until the end of the test. It skips the test if mounting is not
// permitted, as in most containers and for users other than root.
func mount(t *testing.T, args ...string) {
	t.Helper()
	cmd := command(t, "mount", args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	if out, err := cmd.CombinedOutput(); err != nil {
		if m := denied.Find(out); m != nil {
			t.Skipf("not tested here: no file system may be mounted (%s); run it as root, outside a container", m)
		}
		t.Fatalf("DL-04: mount %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	t.Cleanup(func() { // a machine may already have unmounted it
		_ = exec.Command("umount", "-l", args[len(args)-1]).Run()
	})
}
