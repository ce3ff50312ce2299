//go:build release

package release

import (
	"bufio"
	"encoding/json"
	"io"
	"path/filepath"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
)

// TestImage checks the layout for both architectures, and that the image's user is not root. The
// binary in it runs, and a user can sign in. The other architecture runs in qemu (DL-04).
func TestImage(t *testing.T) {
	layout, err := filepath.Abs(filepath.Join(dist, "oci"))
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range []string{arch, otherArch} {
		program := filepath.Join(t.TempDir(), "mcp-authd")
		output(t, "go", "run", "-C", top+"/deploy/release/pack", ".", "check", layout, of, program)
		if sum(t, program) != sum(t, binary(t, of)) {
			t.Errorf("DL-04: the image for %s has another binary", of)
		}
		if of == arch {
			began := time.Now()
			demo(t, program)
			t.Logf("from the start of the image's program to the tools: %v", time.Since(began).Round(time.Second/10))
			continue
		}
		emulator := map[string]string{"amd64": "qemu-x86_64-static", "arm64": "qemu-aarch64-static"}[of]
		demo(t, emulator, program)
	}
	untarred := t.TempDir()
	output(t, "tar", "-xf", one(t, "*_oci.tar"), "-C", untarred)
	output(t, "diff", "-r", layout, untarred)
}

// demo runs the demo of a binary and signs in to it.
func demo(t *testing.T, words ...string) {
	t.Helper()
	cmd := command(t, words[0], append(words[1:], "demo", "--listen", "127.0.0.1:0", "--json")...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // being killed is not an error
	}()
	var d demotest.Demo
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &d)
	}
	if err != nil {
		t.Fatalf("DL-04: the demo said %s (%v)", line, err)
	}
	if last, err := tryToSignIn(t, binary(t, arch), d.MCPURL, d.Person()); err != nil {
		t.Errorf("DL-04: the sign-in at the demo ended with %q: %v", last, err)
	}
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
