//go:build linux

package e2e

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/testkit/program"
)

// TestHidden: SP-22, Security M9. Another process of the same user, such as a program of the
// gateway, can read neither the environment of the server nor its memory.
func TestHidden(t *testing.T) {
	dir := t.TempDir()
	for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	program, err := os.ReadFile(program.Authd(t))
	if err != nil {
		t.Fatal(err)
	}
	bin, data := filepath.Join(dir, "mcp-authd"), filepath.Join(dir, "data")
	if err := os.WriteFile(bin, program, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	nobody := &syscall.SysProcAttr{}
	if os.Geteuid() == 0 { // root can read everything
		nobody.Credential = &syscall.Credential{Uid: 65534, Gid: 65534}
		if err := os.Chown(data, 65534, 65534); err != nil {
			t.Fatal(err)
		}
	}
	server := exec.Command(bin, "demo", "--listen", "127.0.0.1:0", "--data", data, "--json")
	server.SysProcAttr, server.Env = nobody, append(os.Environ(), "HOME="+data, "OF_THE_SERVER=hunter2")
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = server.Process.Kill()
		_ = server.Wait() // killed
	}()
	if _, err := bufio.NewReader(out).ReadBytes('\n'); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"environ", "mem", "fd/1"} {
		look := exec.Command("head", "-c", "1000", fmt.Sprintf("/proc/%d/%s", server.Process.Pid, name))
		look.SysProcAttr = nobody
		got, err := look.CombinedOutput()
		if err == nil || !strings.Contains(string(got), "Permission denied") {
			t.Errorf("%s of the server: %v %.200q", name, err, got)
		}
	}
}
