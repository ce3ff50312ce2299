package conformance

import (
	"encoding/json"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/testkit/lane"
	"github.com/mcp-authd/mcp-authd/internal/testkit/nettest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/npmtest"
)

const fixture = "github.com/modelcontextprotocol/go-sdk/conformance/everything-server"

// plainTransport is the code that serves the SDK's fixture.
const plainTransport = `mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server {
			return server
		}, &mcp.StreamableHTTPOptions{Stateless: *stateless})`

// buildAdapted builds the SDK's fixture with our adapter as its transport. It uses an overlay that
// adds testdata/adapted. Its tools, prompts and resources are unchanged, and this repository does
// not contain its code.
func buildAdapted(t *testing.T) (binary string) {
	t.Helper()
	out, err := exec.Command("go", "list", "-f", "{{.Dir}}", fixture).Output()
	if err != nil {
		t.Fatal(err)
	}
	dir, tmp := strings.TrimSpace(string(out)), t.TempDir()
	source, err := os.ReadFile(filepath.Join(dir, "main.go"))
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(source), plainTransport, "protected(server)", 1)
	if changed == string(source) {
		t.Fatal("the fixture of this SDK serves in another way: adjust plainTransport")
	}
	patched := filepath.Join(tmp, "main.go")
	if err := os.WriteFile(patched, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	ours, err := filepath.Abs("testdata/adapted")
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(ours, "main.go"): patched}})
	if err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(tmp, "overlay.json")
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	binary = filepath.Join(tmp, "adapted-server")
	if out, err := exec.Command("go", "build", "-overlay", list, "-o", binary,
		"./testdata/adapted").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return binary
}

func start(t *testing.T, binary string, flags ...string) *url.URL {
	t.Helper()
	address := nettest.For(t)
	cmd := exec.Command(binary, append([]string{"-http=" + address}, flags...)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed
	})
	waitFor(t, address)
	return &url.URL{Scheme: "http", Host: address}
}

// TestAdapter checks that the SDK's server passes every scenario behind guard and adapter,
// including those of tasks, which the SDK does not support.
func TestAdapter(t *testing.T) {
	npmtest.Dir(t)
	adapted := start(t, buildAdapted(t)).String()
	sessions, stateless := everything(t)
	unguarded := plain(t, eras(sessions, stateless))
	for _, tt := range []struct {
		name  string
		args  []string
		least int // minimum number of passed checks
	}{
		{"RS-117 RS-120 the suite of 2025-03-26",
			[]string{"--suite", "all", "--spec-version", "2025-03-26"}, 3},
		{"RS-121 RS-122 the suite of 2025-06-18",
			[]string{"--suite", "all", "--spec-version", "2025-06-18"}, 56},
		{"RS-127 RS-128 RS-129 the requirements of 2025-11-25",
			[]string{"--requirements", "2025-11-25"}, 84},
		{"RS-135 RS-136 RS-165 RS-167 RS-187 RS-188 RS-216 the requirements of 2026-07-28",
			[]string{"--requirements", "2026-07-28"}, 197},
		{"RS-146 RS-148 RS-151 the whole suite of 2026-07-28",
			[]string{"--suite", "all", "--spec-version", "2026-07-28"}, 153},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.args[0] == "--suite" {
				lane.Long(t, "the requirements are the part of a suite that every server has to pass")
			}
			want, _, _ := runSuite(t, unguarded, tt.args...)
			got, output, green := runSuite(t, adapted, tt.args...)
			if worse(got, want) != "" {
				// Progress and elicitation of the fixture are flaky even without a guard, so only a
				// repeated failure counts.
				got, output, green = runSuite(t, adapted, tt.args...)
			}
			if len(got) == 0 || len(got) != len(want) {
				t.Fatalf("%d scenarios ran without the adapter and %d with it:\n%s", len(want), len(got), output)
			}
			if failed := failures(got); len(failed) > 0 {
				t.Errorf("failed: %q\n%s", failed, output)
			}
			if bad := worse(got, want); bad != "" {
				t.Errorf("fails with the adapter and not without it: %s\n%s", bad, output)
			}
			if n := passed(got); n < tt.least {
				t.Errorf("%d checks passed, want %d:\n%s", n, tt.least, output)
			}
			if !green {
				t.Errorf("the gate is not green:\n%s", output)
			}
			t.Log(regexp.MustCompile(`Total: .*`).FindString(output))
		})
	}
}

func failures(scenarios map[string][2]int) (names []string) {
	for name, n := range scenarios {
		if n[1] > 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func passed(scenarios map[string][2]int) (n int) {
	for _, s := range scenarios {
		n += s[0]
	}
	return n
}
