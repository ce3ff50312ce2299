//go:build release

package release

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/testkit/nettest"
)

// TestDebianPackage installs the deb on a Debian with systemd as docs/install.md describes, and a
// user signs in. The service survives commands by root, an update, and moving a key to systemd.
// Purging the package keeps the data (DL-04).
func TestDebianPackage(t *testing.T) {
	m := boot(t)
	m.install(t, arch)
	m.run("man", "-w", "mcp-authd-user-add")
	m.run("systemd-analyze", "verify", "--man=no", "/usr/lib/systemd/system/mcp-authd.service")

	address := nettest.For(t)
	m.put("etc/default/mcp-authd", 0o644, []byte(strings.Join(environ(t, address), "\n")+"\n"))
	began := time.Now()
	m.run("systemctl", "enable", "--now", "mcp-authd")
	becomes(t, address, 200, m)
	m.addAlice(t)
	signIn(t, binary(t, arch), address)
	t.Logf("from systemctl enable to the tools: %v", time.Since(began).Round(time.Second/10))
	if !strings.Contains(m.journal(), "Set up the first administrator") {
		t.Errorf("DL-04: the journal has no link for the first account\n%s", m)
	}
	const state = "/var/lib/mcp-authd"
	m.owned(t, state)
	if out := m.run("mcp-authd", "config", "print"); !strings.Contains(out, address) {
		t.Errorf("DL-04: a command of root does not read /etc/default/mcp-authd\n%s", out)
	}

	t.Run("root uses the database while the service is stopped", func(t *testing.T) {
		m.run("systemctl", "stop", "mcp-authd")
		if out := m.run("mcp-authd", "user", "list"); !strings.Contains(out, "alice") {
			t.Errorf("DL-04: alice is not there\n%s", out)
		}
		m.run("systemctl", "start", "mcp-authd")
		becomes(t, address, 200, m)
		signIn(t, binary(t, arch), address)
	})
	t.Run("the key moves to systemd", func(t *testing.T) {
		m.run("systemctl", "stop", "mcp-authd")
		m.run("install", "-d", "-m", "0700", "/etc/credstore")
		m.run("install", "-m", "0600", state+"/secret.key", "/etc/credstore/mcp-authd.secret_key")
		m.run("rm", state+"/secret.key")
		m.run("systemctl", "start", "mcp-authd")
		becomes(t, address, 200, m)
		signIn(t, binary(t, arch), address)
		m.run("test", "!", "-e", state+"/secret.key")
	})
	t.Run("an update starts the service again", func(t *testing.T) {
		before := m.run("systemctl", "show", "--property=MainPID", "--value", "mcp-authd")
		m.run("dpkg", "-i", "/mcp-authd.deb")
		becomes(t, address, 200, m)
		if after := m.run("systemctl", "show", "--property=MainPID", "--value", "mcp-authd"); after == before {
			t.Errorf("DL-04: the service is process %s as before", after)
		}
		signIn(t, binary(t, arch), address)
	})
	t.Run("it is purged", func(t *testing.T) {
		m.run("dpkg", "--purge", "mcp-authd")
		if _, err := os.Stat(filepath.Join(m.root, "usr/bin/mcp-authd")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("DL-04: the program is there after it was removed (%v)", err)
		}
		if code := status(address, "/healthz"); code != 0 {
			t.Errorf("DL-04: the service runs after it was removed: %d", code)
		}
		m.run("test", "-s", state+"/mcp-authd.db")
	})
}

// TestDebianPackageOfAnotherProcessor checks that dpkg names the processor, and installs nothing
// (DL-04).
func TestDebianPackageOfAnotherProcessor(t *testing.T) {
	root := layered(t)
	copyTo(t, packageFor(t, "deb", otherArch), filepath.Join(root, "mcp-authd.deb"))
	out, err := command(t, "chroot", root, "dpkg", "-i", "/mcp-authd.deb").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "package architecture ("+otherArch+") does not match system") {
		t.Errorf("DL-04: dpkg -i: %v\n%s", err, out)
	}
	for _, name := range []string{"usr/bin/mcp-authd", "etc/mcp-authd", "usr/lib/systemd/system/mcp-authd.service"} {
		if _, err := os.Stat(filepath.Join(root, name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("DL-04: it left %s (%v)", name, err)
		}
	}
}

// install installs the deb for a processor.
func (m *machine) install(t *testing.T, arch string) {
	t.Helper()
	copyTo(t, packageFor(t, "deb", arch), filepath.Join(m.root, "mcp-authd.deb"))
	began := time.Now()
	m.run("dpkg", "-i", "/mcp-authd.deb")
	t.Logf("dpkg -i: %v", time.Since(began).Round(time.Second/10))
}

// addAlice adds the user, as root, as docs/install.md describes.
func (m *machine) addAlice(t *testing.T) {
	t.Helper()
	add := m.command("mcp-authd", "user", "add", "alice", "--password-stdin")
	add.Stdin = strings.NewReader(password + "\n")
	if out, err := add.CombinedOutput(); err != nil {
		t.Fatalf("DL-04: user add: %v\n%s", err, out)
	}
}

// owned fails the test unless only the service user can read the files in a directory.
func (m *machine) owned(t *testing.T, dir string) {
	t.Helper()
	for line := range strings.Lines(m.run("find", dir+"/", "-printf", "%u %m %p\n")) {
		user, rest, _ := strings.Cut(line, " ")
		if mode, _, _ := strings.Cut(rest, " "); user != "mcp-authd" || !strings.HasSuffix(mode, "00") {
			t.Errorf("DL-04: others than the service can use %s", line)
		}
	}
}
