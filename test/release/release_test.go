//go:build release

package release

import (
	"crypto/sha256"
	"debug/elf"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

const (
	top  = "../.."
	dist = top + "/dist"
)

// one returns the path of the only file in dist that matches a pattern.
func one(t *testing.T, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dist, pattern))
	if err != nil || len(found) != 1 {
		t.Fatalf("DL-04: dist has %d files %s (%v): run make release", len(found), pattern, err)
	}
	return found[0]
}

// arch is the processor of this machine, and otherArch another one.
const arch = runtime.GOARCH

var otherArch = map[string]string{"amd64": "arm64", "arm64": "amd64"}[arch]

// binary returns the path of the released Linux program for a processor.
func binary(t *testing.T, arch string) string {
	t.Helper()
	path, err := filepath.Abs(one(t, "mcp-authd_linux_"+arch+"_*/mcp-authd"))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// packageFor returns the path of the package of a kind for a processor.
func packageFor(t *testing.T, kind, arch string) string {
	t.Helper()
	other := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[arch]
	return one(t, map[string]string{"deb": "*_" + arch + ".deb", "rpm": "*." + other + ".rpm"}[kind])
}

func command(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	return exec.CommandContext(t.Context(), name, args...)
}

// output returns the output of a command, which must succeed.
func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := command(t, name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("DL-04: %s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// TestArtifacts checks that all files exist and that the checksums match (DL-04).
func TestArtifacts(t *testing.T) {
	for _, platform := range []string{"linux", "darwin", "windows", "freebsd"} {
		for _, arch := range []string{"amd64", "arm64"} {
			kind := "tar.gz"
			if platform == "windows" {
				kind = "zip"
			}
			one(t, "mcp-authd_*_"+platform+"_"+arch+"."+kind)
			one(t, "mcp-authd_*_"+platform+"_"+arch+"."+kind+".spdx.json")
		}
	}
	for _, pattern := range []string{
		"*_amd64.deb", "*_arm64.deb", "*.x86_64.rpm", "*.aarch64.rpm", "*_x86_64.apk", "*_aarch64.apk", "*_oci.tar",
		"homebrew/Formula/mcp-authd.rb", "mcp-authd-[0-9]*.tgz", "mcp-authd-protect-[0-9]*.tgz",
	} {
		one(t, pattern)
	}
	all := sums(t, dist)
	if len(all) != 8+8+6+1+2 { // archives, SBOMs, packages, image, charts
		t.Errorf("DL-04: there are %d checksums: %v", len(all), all)
	}
	formula, err := os.ReadFile(one(t, "homebrew/Formula/mcp-authd.rb"))
	if err != nil {
		t.Fatal(err)
	}
	brewed := 0
	for name, sum := range all {
		content, err := os.ReadFile(filepath.Join(dist, name))
		if got := fmt.Sprintf("%x", sha256.Sum256(content)); err != nil || got != sum {
			t.Errorf("DL-04: %s has the checksum %s, not %s (%v)", name, got, sum, err)
		}
		if strings.Contains(string(formula), sum) {
			brewed++
		}
	}
	if brewed != 4 {
		t.Errorf("DL-04: the formula has the checksums of %d archives:\n%s", brewed, formula)
	}
}

// TestBinary checks that the binary is static, stripped, within the documented size, and contains
// its commit (DL-04).
func TestBinary(t *testing.T) {
	for arch, processor := range map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64} {
		path := binary(t, arch)
		f, err := elf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if libs, err := f.ImportedLibraries(); err != nil || len(libs) > 0 || f.Machine != processor {
			t.Errorf("DL-04: %s is for %v, and needs %v (%v)", path, f.Machine, libs, err)
		}
		if f.Section(".symtab") != nil || f.Section(".debug_info") != nil {
			t.Errorf("DL-04: %s is not stripped", path)
		}
		info, err := os.Stat(path)
		if err != nil || info.Size() > mostBytes {
			t.Errorf("DL-04: %s has %d bytes (%v): docs/performance.md says why it is as large as it is", path,
				info.Size(), err)
		}
	}
	head := strings.TrimSpace(output(t, "git", "-C", top, "rev-parse", "HEAD"))
	var v struct{ Commit, Platform string }
	path := binary(t, arch)
	if err := json.Unmarshal([]byte(output(t, path, "version", "--json")), &v); err != nil || v.Commit != head {
		t.Errorf("DL-04: the binary is of commit %q, not %s (%v)", v.Commit, head, err)
	}
}

// mostBytes is the maximum size of a binary. docs/performance.md explains each part of it.
const mostBytes = 55_500_000

// TestSBOM checks that the SBOM is valid SPDX and lists the parts of the binary (DL-04).
func TestSBOM(t *testing.T) {
	var doc struct {
		SPDXVersion, DocumentNamespace string
		CreationInfo                   struct{ Created string }
		Packages                       []struct{ Name, VersionInfo string }
	}
	b, err := os.ReadFile(one(t, "mcp-authd_*_linux_amd64.tar.gz.spdx.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &doc); err != nil || doc.SPDXVersion != "SPDX-2.3" {
		t.Fatalf("DL-04: it is of %q (%v)", doc.SPDXVersion, err)
	}
	listed := map[string]string{}
	for _, p := range doc.Packages {
		listed[p.Name] = p.VersionInfo
	}
	build := output(t, "go", "version", "-m", one(t, "mcp-authd_linux_amd64_*/mcp-authd"))
	made := regexp.MustCompile(`(?m)^\tdep\t(\S+)\t(\S+)`).FindAllStringSubmatch(build, -1)
	if len(made) < 50 {
		t.Fatalf("DL-04: the binary was made of %d modules:\n%s", len(made), build)
	}
	for _, m := range made {
		if listed[m[1]] != m[2] {
			t.Errorf("DL-04: the SBOM has %q for %s %s", listed[m[1]], m[1], m[2])
		}
	}
	if listed["stdlib"] == "" {
		t.Error("DL-04: the SBOM lacks Go's own library")
	}
}

// TestReproducible checks that a build of the same commit in another directory has identical Linux
// files and charts. The second build of the amd64 program uses an empty cache (DL-04).
func TestReproducible(t *testing.T) {
	if dirty := output(t, "git", "-C", top, "status", "--porcelain", "--untracked-files=no"); dirty != "" {
		t.Fatalf("DL-04: commit first, and make release: a build of a clone is compared with dist/:\n%s", dirty)
	}
	dir := filepath.Join(t.TempDir(), "elsewhere")
	output(t, "git", "clone", "--quiet", top, dir)
	config, err := os.ReadFile(filepath.Join(dir, ".goreleaser.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	less := string(config)
	for from, to := range map[string]string{
		"goos: [linux, darwin, windows, freebsd]": "goos: [linux]",
		"env: [CGO_ENABLED=0]": `env: [CGO_ENABLED=0, '{{ if eq .Arch "amd64" }}GOCACHE=` + t.TempDir() +
			"{{ else }}NO_CACHE_OF_ITS_OWN=1{{ end }}']",
	} {
		if !strings.Contains(less, from) {
			t.Fatalf("DL-04: .goreleaser.yaml has no %q", from)
		}
		less = strings.Replace(less, from, to, 1)
	}
	file := filepath.Join(t.TempDir(), "one.yaml")
	if err := os.WriteFile(file, []byte(less), 0o600); err != nil {
		t.Fatal(err)
	}
	output(t, filepath.Join(dir, "deploy/release/build.sh"), "--config", file)
	here, there := sums(t, dist), sums(t, filepath.Join(dir, "dist"))
	if len(there) != 2+2+6+1+2 { // archives, SBOMs, packages, image, charts
		t.Errorf("DL-04: there are %d checksums: %v", len(there), there)
	}
	for name, sum := range there {
		if here[name] != sum {
			t.Errorf("DL-04: %s differs from one build to the next", name)
		}
	}
	for _, arch := range []string{"amd64", "arm64"} {
		name, err := filepath.Rel(dist, one(t, "mcp-authd_linux_"+arch+"_*/mcp-authd"))
		if err != nil || sum(t, filepath.Join(dist, name)) != sum(t, filepath.Join(dir, "dist", name)) {
			t.Errorf("DL-04: the program for %s differs from one build to the next (%v)", arch, err)
		}
	}
}

// sums returns the checksums from the checksum file of a directory, by file name.
func sums(t *testing.T, dir string) map[string]string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for line := range strings.Lines(string(b)) {
		sum, name, ok := strings.Cut(strings.TrimSpace(line), "  ")
		if !ok || all[name] != "" {
			t.Errorf("DL-04: SHA256SUMS has the line %q", line)
		}
		all[name] = sum
	}
	return all
}

// copyTo copies a file.
func copyTo(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, b, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func sum(t *testing.T, file string) [32]byte {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return sha256.Sum256(b)
}

// TestUnit checks that systemd accepts the unit and rates its exposure at 2.0 or better (DL-04).
func TestUnit(t *testing.T) {
	out := output(t, "systemd-analyze", "security", "--offline=true", "--no-pager",
		top+"/deploy/package/mcp-authd.service")
	m := regexp.MustCompile(`Overall exposure level for \S+: ([0-9.]+)`).FindStringSubmatch(out)
	if m == nil || strings.Contains(out, "ignoring") {
		t.Fatalf("DL-04: systemd-analyze says\n%s", out)
	}
	if level, err := strconv.ParseFloat(m[1], 64); err != nil || level > 2.0 {
		t.Errorf("DL-04: the exposure is %s (%v)\n%s", m[1], err, out)
	}
}
