//go:build release

package release

import (
	"bufio"
	"encoding/json"
	"io"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
)

// TestImage: the layout is sound for both architectures, its user is not root, and the binary in it runs,
// and lets a person sign in (DL-04).
func TestImage(t *testing.T) {
	layout, err := filepath.Abs(filepath.Join(dist, "oci"))
	if err != nil {
		t.Fatal(err)
	}
	for _, arch := range []string{"amd64", "arm64"} {
		binary := filepath.Join(t.TempDir(), "mcp-authd")
		output(t, "go", "run", "-C", top+"/deploy/release/pack", ".", "check", layout, arch, binary)
		if sum(t, binary) != sum(t, one(t, "mcp-authd_linux_"+arch+"_*/mcp-authd")) {
			t.Errorf("DL-04: the image for %s has another binary", arch)
		}
		if arch == runtime.GOARCH {
			demo(t, binary)
		}
	}
	untarred := t.TempDir()
	output(t, "tar", "-xf", one(t, "*_oci.tar"), "-C", untarred)
	output(t, "diff", "-r", layout, untarred)
}

// demo runs the demo of a binary, and signs in to it.
func demo(t *testing.T, binary string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, "demo", "--listen", "127.0.0.1:0", "--json")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // the kill is the result
	}()
	var d demotest.Demo
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &d)
	}
	if err != nil {
		t.Fatalf("DL-04: the demo said %s (%v)", line, err)
	}
	signIn(t, binary, d.MCPURL, d.Person())
}

// steps calls visit with each link of a sign-in, and returns the name of its last step.
func steps(t *testing.T, out io.Reader, visit func(link string)) (last string) {
	t.Helper()
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var step struct{ Step, URL string }
		if err := json.Unmarshal(lines.Bytes(), &step); err != nil {
			t.Fatalf("%q: %v", lines.Text(), err)
		}
		last = step.Step
		if step.URL != "" {
			visit(step.URL)
		}
	}
	return last
}
