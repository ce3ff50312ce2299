//go:build unix

package stdio

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

// TestUser: SP-24, Security M9. A program runs as the configured user without the gateway's groups,
// and cannot read the gateway's files.
func TestUser(t *testing.T) {
	if os.Geteuid() != 0 {
		_, err := New(Config{Command: []string{"sh"}, User: "4242:4243"})
		if err == nil || !strings.Contains(err.Error(), "only when the server runs as root") {
			t.Errorf("without root: %v", err)
		}
		return
	}
	key := filepath.Join(t.TempDir(), "secret.key")
	if err := os.WriteFile(key, []byte("hunter2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf(`{ echo "uid $(id -u) groups $(id -G) home $HOME user $USER."; cat %s; } >&2; cat`, key)
	s := serveCommand(t, Config{Command: []string{"/bin/sh", "-c", script}, User: "4242:4243", Dir: "/"})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go s.do(ctx, http.MethodPost,
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}`)
	wait.Until(t, "the program tells who it is",
		func() bool { return strings.Contains(s.log.String(), "uid 4242 groups 4243 home / user .") })
	wait.Until(t, "the key is not readable",
		func() bool { return strings.Contains(s.log.String(), "ermission denied") })
	if strings.Contains(s.log.String(), "hunter2") {
		t.Error("the program has read the key")
	}
}

// TestLookUp checks the errors for accounts that cannot be used.
func TestLookUp(t *testing.T) {
	for who, want := range map[string]string{
		"no-such-user-here": `this machine has no user "no-such-user-here"`, "1:x": "of the form UID:GID",
		"-1:0": "of the form UID:GID",
	} {
		if _, err := LookUp(who); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", who, err, want)
		}
	}
}

// TestCanRead checks that CanRead follows the modes of the file and its directories.
func TestCanRead(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs files of another user, which only root makes")
	}
	dir := t.TempDir()
	for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "data", "key")
	if err := os.Mkdir(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	them := &Account{UID: 4242, GID: 4243, Groups: []uint32{4244}}
	for _, c := range []struct {
		file, dir os.FileMode
		uid, gid  int
		want      bool
	}{
		{0o600, 0o755, 0, 0, false}, {0o604, 0o755, 0, 0, true}, {0o604, 0o700, 0, 0, false},
		{0o640, 0o755, 0, 4244, true}, {0o640, 0o755, 0, 4243, true},
		{0o604, 0o755, 0, 4244, false}, {0o400, 0o755, 4242, 0, true}, {0o044, 0o755, 4242, 4243, false},
	} {
		if err := os.Chmod(path, c.file); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Dir(path), c.dir); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(path, c.uid, c.gid); err != nil {
			t.Fatal(err)
		}
		if got := them.CanRead(path); got != c.want {
			t.Errorf("%o of %d:%d in %o: got %v", c.file, c.uid, c.gid, c.dir, got)
		}
	}
	if them.CanRead(path + "-none") {
		t.Error("a file that is not there can be read")
	}
}
