//go:build release

package chart

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// tools are helm and kubeconform. A separate module pins their versions.
var tools = map[string]*tool{"helm": {}, "kubeconform": {}}

type tool struct {
	once sync.Once
	path string
	err  error
}

// run runs a tool and returns its output.
func run(t *testing.T, name string, args ...string) (string, error) {
	t.Helper()
	it := tools[name]
	it.once.Do(func() {
		out, err := exec.Command("go", "-C", "../../deploy/helm/tools", "tool", "-n", name).Output()
		it.path, it.err = strings.TrimSpace(string(out)), err
	})
	if it.err != nil {
		t.Fatalf("build %s: %v", name, it.err)
	}
	cmd := exec.CommandContext(t.Context(), it.path, args...)
	home := t.TempDir()
	cmd.Env = append(os.Environ(), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// kubeVersion is the Kubernetes version for rendering charts.
const kubeVersion = "1.37.2"

// template renders the chart, or fails the test.
func template(t *testing.T, chart string, args ...string) string {
	t.Helper()
	args = append([]string{
		"template", "mcp-authd", chart, "--namespace", "auth", "--kube-version", kubeVersion,
	}, args...)
	out, err := run(t, "helm", args...)
	if err != nil {
		t.Fatalf("DL-04: helm %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// notes returns the path of the example chart, with the library chart as a dependency.
func notes(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../../deploy/helm")); err != nil {
		t.Fatal(err)
	}
	chart := filepath.Join(dir, "examples", "notes")
	if out, err := run(t, "helm", "dependency", "update", "--skip-refresh", chart); err != nil {
		t.Fatalf("DL-04: helm dependency update: %v\n%s", err, out)
	}
	return chart
}

// matrix returns the values files of the chart, by name.
func matrix(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	files, err := filepath.Glob(chartDir + "/ci/*-values.yaml")
	if err != nil || len(files) < 5 {
		t.Fatalf("the chart has %d values files (%v)", len(files), err)
	}
	for _, file := range files {
		all[strings.TrimSuffix(filepath.Base(file), "-values.yaml")] = file
	}
	return all
}

// TestLint checks that helm lint finds no faults in the charts (DL-04).
func TestLint(t *testing.T) {
	lint := func(args ...string) {
		t.Helper()
		args = append([]string{"lint", "--strict", "--kube-version", kubeVersion}, args...)
		if out, err := run(t, "helm", args...); err != nil {
			t.Errorf("DL-04: helm %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	for _, file := range matrix(t) {
		lint("--values", file, chartDir)
	}
	lint("../../deploy/helm/mcp-authd-protect")
	lint(notes(t))
}

// alerts matches the alert rules, which TestAlertsOfChart compares. So a new rule changes no golden
// file.
var alerts = regexp.MustCompile(`(?s)  # Written from internal/metrics.*?(\n---|\z)`)

// TestGolden checks that the chart renders the reviewed golden files (DL-04).
func TestGolden(t *testing.T) {
	for name, file := range matrix(t) {
		text := alerts.ReplaceAllString(template(t, chartDir, "--values", file), "  groups: [] # of the file$1")
		current(t, filepath.Join("testdata", name+".yaml"), []byte(text))
	}
	current(t, "testdata/notes.yaml", []byte(template(t, notes(t))))
}

// TestNotes checks that the notes after an installation describe how to create the first account
// (DL-04).
func TestNotes(t *testing.T) {
	chart := t.TempDir()
	if err := os.CopyFS(chart, os.DirFS(chartDir)); err != nil {
		t.Fatal(err)
	}
	// Helm shows the notes only after an installation in a cluster. So the test renders them in an
	// object.
	shown := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: notes}\ndata:\n  notes: |\n" +
		"{{ include (print $.Template.BasePath \"/NOTES.txt\") . | indent 4 }}\n"
	if err := os.WriteFile(filepath.Join(chart, "templates", "shown.yaml"), []byte(shown), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"sqlite":   "kubectl exec -n auth statefulset/mcp-authd -c mcp-authd -- mcp-authd setup-link",
		"postgres": "kubectl exec -n auth deployment/mcp-authd -c mcp-authd -- mcp-authd setup-link",
	} {
		told := template(t, chart, "--values", matrix(t)[name], "--show-only", "templates/shown.yaml")
		if !strings.Contains(told, want) || strings.Contains(told, "trusted_proxies") {
			t.Errorf("DL-04: %s: the notes lack %q, or ask for a value that is set:\n%s", name, want, told)
		}
	}
	unset := template(t, chart, "--values", matrix(t)["volume"], "--set", "ingress.enabled=true", "--show-only",
		"templates/shown.yaml")
	if !strings.Contains(unset, "Set config.trusted_proxies") {
		t.Errorf("DL-04: the notes do not ask for trusted_proxies:\n%s", unset)
	}
}

// TestRefused checks that wrong values are refused before the installation, with their names
// (DL-04).
func TestRefused(t *testing.T) {
	values := matrix(t)
	for _, c := range []struct{ base, set, want string }{
		{"sqlite", "config.issuer=", "config.issuer is missing"},
		{"sqlite", "config.isuer=https://auth.example.com", "isuer"},
		{"sqlite", "config.tokens.algorithm=HS256", "/config/tokens/algorithm"},
		{"sqlite", "config.listen=:80", "listen"},
		{"sqlite", "config.secret_key=abc", "secret_key"},
		{"sqlite", "replicas=2", "replicas: 2 needs PostgreSQL"},
		{"sqlite", "autoscaling.enabled=true", "autoscaling.enabled needs PostgreSQL"},
		{"sqlite", "database.type=mysql", "/database/type"},
		{"sqlite", "database.type=postgres", "secrets lacks database.url"},
		{"sqlite", "imagee.tag=1", "imagee"},
		{"sqlite", "secrets.nothing.name=a", "nothing"},
		{"sqlite", "httpRoute.enabled=true", "httpRoute.parentRefs"},
		{"postgres", "database.type=sqlite,replicas=1", "secrets has database.url"},
		{"sqlite", `database.type=postgres,secrets.database\.url.name=a,secrets.database\.url.key=b`,
			"secrets lacks secret_key"},
		{"postgres", "config.thirdparty[0].client_secret=abc", "client_secret"},
	} {
		out, err := run(t, "helm", "template", "mcp-authd", chartDir, "--kube-version", kubeVersion,
			"--values", values[c.base], "--set", c.set)
		if err == nil || !strings.Contains(out, c.want) {
			t.Errorf("DL-04: --set %s: got %v, want a word about %q\n%.600s", c.set, err, c.want, out)
		}
	}
}
