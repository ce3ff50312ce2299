//go:build release

package release

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/nettest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

// refused fails the test unless a server does not start and reports why. words is its command.
func refused(t *testing.T, words []string, want ...string) {
	t.Helper()
	cmd := command(t, words[0], words[1:]...)
	cmd.Env = append(environ(t, nettest.For(t)), "PATH=/usr/bin:/bin:/usr/sbin:/sbin")
	out, err := cmd.CombinedOutput()
	complains(t, string(out), err, want...)
}

// complains fails the test unless a server has ended with 1. Only the last line that it wrote may
// be for the operator, and must have each of the texts. It returns the line.
func complains(t *testing.T, out string, err error, want ...string) string {
	t.Helper()
	const begin = "mcp-authd: "
	var exit *exec.ExitError
	lines := strings.Split(strings.TrimSpace(out), "\n")
	last := lines[len(lines)-1]
	if !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.HasPrefix(last, begin) {
		t.Fatalf("DL-04: got %v, want exit code 1 and a line of mcp-authd\n%s", err, out)
	}
	for _, line := range lines[:len(lines)-1] {
		if strings.HasPrefix(line, begin) {
			t.Errorf("DL-04: there is more than one line: %s", line)
		}
	}
	for _, text := range want {
		if !strings.Contains(last, text) {
			t.Errorf("DL-04: the line lacks %q: %s", text, last)
		}
	}
	return last
}

// TestNoRoomAtTheStart checks that a first start on a full disk prints one line. Once there is
// room, the next start works like a first one (DL-04).
func TestNoRoomAtTheStart(t *testing.T) {
	data := filepath.Join(small(t, "4k"), "data")
	words := []string{binary(t, arch), "serve", "--data", data}
	said := map[string]bool{}
	var s *server
	for room := 4; s == nil; room += 4 + room/4 {
		output(t, "mount", "-o", fmt.Sprintf("remount,size=%dk", room), filepath.Dir(data))
		s = serve(t, words...)
		if err := s.begins(t); err != nil {
			said[complains(t, s.log.String(), err, "make room")] = true
			s = nil
		}
	}
	for line := range said {
		t.Log(line)
	}
	if len(said) < 2 {
		t.Errorf("DL-04: the disk was full at one place alone, of the key, the database and the link: %v", said)
	}
	output(t, "mount", "-o", "remount,size=32m", filepath.Dir(data))
	becomes(t, s.address, 200, &s.log)
	addAlice(t, s.environ, binary(t, arch), "--data", data)
	signIn(t, binary(t, arch), s.address)
}

// begins waits until a server answers, or returns its exit error.
func (s *server) begins(t *testing.T) error {
	t.Helper()
	var ended error
	wait.Success(t, "the server begins or ends (DL-04)", func() error {
		select {
		case ended = <-s.ended:
			s.ended <- ended
			return nil
		default:
		}
		if code := status(s.address, "/healthz"); code != 200 {
			return fmt.Errorf("/healthz is %d\n%s", code, &s.log)
		}
		return nil
	})
	return ended
}

// TestNoRoomWhileItServes checks a full disk at run time. The server is not ready and reports why,
// answers requests without writes, loses nothing, and continues once there is room (DL-04).
func TestNoRoomWhileItServes(t *testing.T) {
	dir := small(t, "16m")
	data := filepath.Join(dir, "data")
	s := serve(t, binary(t, arch), "serve", "--data", data)
	becomes(t, s.address, 200, &s.log)
	addAlice(t, s.environ, binary(t, arch), "--data", data)
	signIn(t, binary(t, arch), s.address)

	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 16<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk did not fill up: %v", err)
	}
	becomes(t, s.address, 503, &s.log)
	wait.Success(t, "the log says why (DL-04)", func() error { // the log arrives through a pipe
		if log := s.log.String(); !strings.Contains(log,
			"the store cannot be written: sqlite: writable: the disk is full, ") {
			return errors.New(log)
		}
		return nil
	})
	for _, path := range []string{"/healthz", "/jwks.json", "/.well-known/oauth-authorization-server"} {
		if got := status(s.address, path); got != 200 {
			t.Errorf("DL-04: %s: got %d, want 200", path, got)
		}
	}
	person := demotest.NewPerson("alice", password)
	if last, err := tryToSignIn(t, binary(t, arch), "http://"+s.address+"/mcp", person); err == nil {
		t.Errorf("DL-04: on a full disk the sign-in came to %q", last)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	becomes(t, s.address, 200, &s.log)
	signIn(t, binary(t, arch), s.address)
	out := command(t, binary(t, arch), "grant", "list", "--json", "--data", data)
	out.Env = s.environ
	if list, err := out.Output(); err != nil || strings.Count(string(list), `"id"`) == 0 {
		t.Errorf("DL-04: the grants are gone: %v\n%s", err, list)
	}
}

// TestReadOnlyDirectory checks that a first and a later start on a read-only disk report this and
// change nothing. Commands that only read continue to work (DL-04).
func TestReadOnlyDirectory(t *testing.T) {
	dir := small(t, "16m")
	data := filepath.Join(dir, "data")
	words := []string{binary(t, arch), "serve", "--data", data}
	output(t, "mount", "-o", "remount,ro", dir)
	refused(t, words, "read-only", "mount it so that it can be written", data)
	output(t, "mount", "-o", "remount,rw", dir)
	if _, err := os.Stat(data); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("DL-04: the data directory is there: %v", err)
	}
	s := serve(t, words...)
	becomes(t, s.address, 200, &s.log)
	s.stop()
	output(t, "mount", "-o", "remount,ro", dir)
	refused(t, words, "read-only", "mount it so that it can be written", data)
}

// TestReadOnlyRoot checks that the server writes only to its data directory, as with the image and
// the unit (DL-04).
func TestReadOnlyRoot(t *testing.T) {
	data := small(t, "16m")
	s := serve(t, "unshare", "--mount", "sh", "-ec",
		`mount -o remount,ro,bind /; if touch /tmp/x 2>/dev/null; then exit 77; fi; exec "$@"`, "sh",
		binary(t, arch), "serve", "--data", data)
	becomes(t, s.address, 200, &s.log)
	addAlice(t, s.environ, binary(t, arch), "--data", data)
	signIn(t, binary(t, arch), s.address)
}

// TestModes checks that a server does not start if the wrong users can read its files, or the
// service cannot. It prints the command that fixes this, and creates nothing (DL-04).
func TestModes(t *testing.T) {
	nobody := []string{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", binary(t, arch), "serve"}
	dir := small(t, "16m")
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(path, []byte(text), mode), os.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	config := write("config.yaml", "data_dir: "+dir+"/data\n", 0o600)
	refused(t, slices.Concat(nobody, []string{"--config", config}),
		"configuration file "+config+" cannot be read: permission denied",
		"this runs as nobody (uid 65534)", "give that user the right to read it")

	key := write("key", strings.Repeat("k", 40), 0o644)
	withKey := []string{"env", "MCP_AUTHD_SECRET_KEY_FILE=" + key}
	data := []string{"--data", filepath.Join(dir, "data")}
	refused(t, slices.Concat(withKey, []string{binary(t, arch), "serve"}, data), "the secret key in "+key+
		" is not secret", "every user can read it", "chmod 600 "+key)
	if err := os.Chmod(key, 0o600); err != nil {
		t.Fatal(err)
	}
	refused(t, slices.Concat(withKey, nobody, data), key+": permission denied", "this runs as nobody (uid 65534)",
		"give that user the right to read it")

	if err := os.Mkdir(filepath.Join(dir, "data"), 0o755); err != nil {
		t.Fatal(err)
	}
	refused(t, slices.Concat(nobody, data), "permission denied",
		"this runs as nobody (uid 65534), and the data directory "+dir+"/data is drwxr-xr-x",
		"give that user access to it")
	left, err := os.ReadDir(filepath.Join(dir, "data"))
	if err != nil || len(left) > 0 {
		t.Errorf("DL-04: the data directory has %v (%v)", left, err)
	}
}
