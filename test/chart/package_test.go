//go:build release

package chart

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const (
	dist = "../../dist"
	// sourceVersion is the version of the charts in the source and in the golden files.
	sourceVersion = "0.0.0"
)

// released returns the version that "make release" has built.
func released(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(dist + "/metadata.json")
	var meta struct{ Version string }
	if err == nil {
		err = json.Unmarshal(b, &meta)
	}
	if err != nil || meta.Version == "" {
		t.Fatalf("DL-04: dist has no version (%v): run make release", err)
	}
	return meta.Version
}

// packaged returns the path of a chart's package.
func packaged(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(dist, name+"-"+released(t)+".tgz"))
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Fatalf("DL-04: %v: run make release", err)
	}
	return path
}

// ofSource matches the source version in a label or as a tag, but not an address such as 10.0.0.0.
var ofSource = regexp.MustCompile(`(?m)^.*[":-]0\.0\.0("|$).*$`)

// asSource replaces the version in a rendered release chart with the version of the source.
func asSource(t *testing.T, text string) []byte {
	t.Helper()
	if found := ofSource.FindString(text); found != "" {
		t.Errorf("DL-04: it has the version of the source: %s", found)
	}
	return []byte(strings.ReplaceAll(alerts.ReplaceAllString(text, "  groups: [] # of the file$1"),
		released(t), sourceVersion))
}

// TestPackaged checks that the charts of a release have its version, name its image, and otherwise
// render like those of the source (DL-04).
func TestPackaged(t *testing.T) {
	for _, name := range []string{"mcp-authd", "mcp-authd-protect"} {
		out, err := run(t, "helm", "show", "chart", packaged(t, name))
		if err != nil {
			t.Fatalf("DL-04: helm show chart: %v\n%s", err, out)
		}
		var chart struct {
			Name, Version string
			AppVersion    string `yaml:"appVersion"`
		}
		if err := yaml.Unmarshal([]byte(out), &chart); err != nil || chart.Name != name ||
			chart.Version != released(t) || chart.AppVersion != released(t) {
			t.Errorf("DL-04: got %+v (%v), want %s %s", chart, err, name, released(t))
		}
	}
	for name, file := range matrix(t) {
		text := template(t, packaged(t, "mcp-authd"), "--values", file)
		same(t, filepath.Join("testdata", name+".yaml"), asSource(t, text))
	}
	same(t, "testdata/notes.yaml", asSource(t, template(t, notesOf(t, packaged(t, "mcp-authd-protect")))))
}

// same compares a rendered release with a golden file. Only TestGolden writes golden files.
func same(t *testing.T, file string, got []byte) {
	t.Helper()
	want, err := os.ReadFile(file)
	if err != nil || string(got) != string(want) {
		t.Errorf("DL-04: the packaged chart does not render %s (%v)\n%.3000s", file, err, got)
	}
}

// notesOf returns the example chart with a packaged library.
func notesOf(t *testing.T, library string) string {
	t.Helper()
	chart := t.TempDir()
	if err := os.CopyFS(chart, os.DirFS("../../deploy/helm/examples/notes")); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(chart, "Chart.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text = []byte(strings.ReplaceAll(string(text), "version: "+sourceVersion, "version: "+released(t)))
	b, err := os.ReadFile(library)
	if err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	if err == nil {
		err = os.Mkdir(filepath.Join(chart, "charts"), 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(chart, "charts", filepath.Base(library)), b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return chart
}

// TestPublished checks that the release script pushes the charts to a registry. helm must find them
// there by their version, with the same digest each time (DL-04).
func TestPublished(t *testing.T) {
	at := registry(t) + "/charts"
	publish := func() string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "../../deploy/release/publish-charts.sh", at, "--plain-http")
		var errs strings.Builder
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("DL-04: publish-charts.sh: %v\n%s", err, &errs)
		}
		return string(out)
	}
	first := publish()
	if again := publish(); again != first {
		t.Errorf("DL-04: the second time it printed\n%swhere it was\n%s", again, first)
	}
	for _, name := range []string{"mcp-authd", "mcp-authd-protect"} {
		if !strings.Contains(first, at+"/"+name+" sha256:") {
			t.Errorf("DL-04: the script tells no digest of %s:\n%s", name, first)
		}
		to := t.TempDir()
		out, err := run(t, "helm", "pull", "oci://"+at+"/"+name, "--version", released(t), "--plain-http",
			"--destination", to)
		if err != nil {
			t.Fatalf("DL-04: helm pull: %v\n%s", err, out)
		}
		want, err := os.ReadFile(packaged(t, name))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(to, name+"-"+released(t)+".tgz"))
		if err != nil || string(got) != string(want) {
			t.Errorf("DL-04: the registry has another file for %s (%v)", name, err)
		}
	}
	text := template(t, "oci://"+at+"/mcp-authd", "--version", released(t), "--plain-http",
		"--values", matrix(t)["sqlite"])
	same(t, "testdata/sqlite.yaml", asSource(t, text[strings.Index(text, "---"):])) // helm prints the source first
}

// registry starts a registry in memory that ends with the test, and returns its address.
func registry(t *testing.T) string {
	t.Helper()
	path, err := exec.CommandContext(t.Context(),
		"go", "-C", "../../deploy/release/pack", "tool", "-n", "registry").Output()
	if err != nil {
		t.Fatalf("build the registry: %v", err)
	}
	cmd := exec.CommandContext(t.Context(), strings.TrimSpace(string(path)), "-port", "0")
	log, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // being killed is not an error
	})
	for lines := bufio.NewScanner(log); lines.Scan(); {
		if _, port, ok := strings.Cut(lines.Text(), "serving on port "); ok {
			go func() {
				for lines.Scan() { // the log of requests; a full pipe would stop it
				}
			}()
			return "localhost:" + port
		}
	}
	t.Fatal("the registry tells no port")
	return ""
}
