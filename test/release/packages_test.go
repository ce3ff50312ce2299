//go:build release

package release

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// installed lists files that each package has.
var installed = []string{
	"/etc/mcp-authd/config.yaml", "/usr/bin/mcp-authd", "/usr/lib/systemd/system/mcp-authd.service",
	"/usr/lib/sysusers.d/mcp-authd.conf", "/usr/share/bash-completion/completions/mcp-authd",
	"/usr/share/doc/mcp-authd/copyright", "/usr/share/fish/vendor_completions.d/mcp-authd.fish",
	"/usr/share/man/man1/mcp-authd.1.gz", "/usr/share/man/man1/mcp-authd-user-add.1.gz",
}

// TestContents checks that each package has the program, its unit, its manual pages and its
// completions, owned by root (DL-04).
func TestContents(t *testing.T) {
	for what, list := range map[string]string{
		"deb": output(t, "dpkg-deb", "-c", one(t, "*_amd64.deb")),
		"rpm": output(t, "rpm", "-qplv", one(t, "*.x86_64.rpm")),
		"apk": output(t, "tar", "-tvzf", one(t, "*_x86_64.apk")),
	} {
		for _, file := range installed {
			if !strings.Contains(list, file[1:]+"\n") {
				t.Errorf("DL-04: the %s lacks %s:\n%s", what, file, list)
			}
		}
		for line := range strings.Lines(list) {
			if strings.HasPrefix(line, "-") && (strings.Contains(line[:10], "s") || line[8] == 'w') {
				t.Errorf("DL-04: the %s has %s", what, line)
			}
		}
	}
	if out := output(t, "rpm", "-K", "--nosignature", one(t, "*.x86_64.rpm")); !strings.Contains(out, "digests OK") {
		t.Errorf("DL-04: rpm says %s", out)
	}
}

// TestLintian checks that Debian's linter finds no error in the deb (DL-04).
func TestLintian(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "lintian", "--fail-on", "error", "--allow-root",
		one(t, "*_amd64.deb")).CombinedOutput()
	if err != nil {
		t.Errorf("DL-04: lintian: %v\n%s", err, out)
	}
}

// TestRPM checks that rpm installs the package, verifies every file, and refuses the package for
// another processor (DL-04). Debian's rpm cannot test the scripts or Fedora's dependencies.
func TestRPM(t *testing.T) {
	root := t.TempDir()
	install := func(file string) (string, error) {
		out, err := exec.CommandContext(t.Context(), "rpm", "--root", root, "-i", "--nodeps", "--noscripts",
			file).CombinedOutput()
		return string(out), err
	}
	if out, err := install(packageFor(t, "rpm", otherArch)); err == nil ||
		!strings.Contains(out, "is intended for a different architecture") {
		t.Errorf("DL-04: that of another processor: %v\n%s", err, out)
	}
	program := filepath.Join(root, "usr/bin/mcp-authd")
	if _, err := os.Stat(program); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("DL-04: that of another processor left its program (%v)", err)
	}
	if out, err := install(packageFor(t, "rpm", arch)); err != nil {
		t.Fatalf("DL-04: rpm -i: %v\n%s", err, out)
	}
	output(t, "rpm", "--root", root, "--verify", "--nodeps", "mcp-authd")
	if sum(t, program) != sum(t, binary(t, arch)) {
		t.Error("DL-04: rpm installs another program")
	}
}

// TestAPK checks that the control part has the hash of the data part and names the processor, as
// apk requires (DL-04). Debian has no apk, so the test reads the format: concatenated gzip members
// without a signature, which would require a key.
func TestAPK(t *testing.T) {
	for _, c := range []struct{ arch, name string }{{"amd64", "x86_64"}, {"arm64", "aarch64"}} {
		b, err := os.ReadFile(one(t, "*_"+c.name+".apk"))
		if err != nil {
			t.Fatal(err)
		}
		members := gzipMembers(t, b)
		if len(members) != 2 {
			t.Fatalf("DL-04: the apk has %d parts", len(members))
		}
		info := map[string]string{}
		for line := range strings.Lines(string(fileOf(t, members[0], ".PKGINFO"))) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), " = ")
			info[key] = value
		}
		hash := sha256.Sum256(members[1])
		for key, want := range map[string]string{
			"pkgname": "mcp-authd", "arch": c.name, "license": "Apache-2.0", "datahash": hex.EncodeToString(hash[:]),
		} {
			if info[key] != want {
				t.Errorf("DL-04: the apk has %s %q, want %q", key, info[key], want)
			}
		}
		program, err := os.ReadFile(binary(t, c.arch))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(fileOf(t, members[1], "usr/bin/mcp-authd"), program) {
			t.Errorf("DL-04: the apk for %s has another program", c.arch)
		}
		for _, script := range []string{".post-install", ".pre-deinstall", ".post-deinstall"} {
			fileOf(t, members[0], script)
		}
	}
}

// gzipMembers returns the members of a file in packed form.
func gzipMembers(t *testing.T, b []byte) (members [][]byte) {
	t.Helper()
	for len(b) > 0 {
		rest := bytes.NewReader(b)
		r, err := gzip.NewReader(rest)
		if err != nil {
			t.Fatal(err)
		}
		r.Multistream(false)
		if _, err := io.Copy(io.Discard, r); err != nil {
			t.Fatal(err)
		}
		members = append(members, b[:len(b)-rest.Len()])
		b = b[len(b)-rest.Len():]
	}
	return members
}

// fileOf returns a file in a packed tar archive.
func fileOf(t *testing.T, packed []byte, name string) []byte {
	t.Helper()
	r, err := gzip.NewReader(bufio.NewReader(bytes.NewReader(packed)))
	if err != nil {
		t.Fatal(err)
	}
	for files := tar.NewReader(r); ; {
		h, err := files.Next()
		if err != nil {
			t.Fatalf("DL-04: %s: %v", name, err)
		}
		if h.Name == name {
			content, err := io.ReadAll(io.LimitReader(files, 1<<28))
			if err != nil {
				t.Fatal(err)
			}
			return content
		}
	}
}
