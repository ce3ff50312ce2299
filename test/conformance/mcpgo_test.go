package conformance

import (
	"encoding/json"
	"maps"
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
	"github.com/mcp-authd/mcp-authd/internal/testkit/program"
)

const (
	mcpGoExample = "../../examples/mcp-go"
	mcpGoFixture = "github.com/mark3labs/mcp-go/examples/conformance"
)

// guarded changes mcp-go's own fixture for the suites, so that it runs behind a guard with the
// hooks of our example.
var guarded = strings.NewReplacer(
	"server.WithElicitation(),", "server.WithElicitation(), mcpguard.With(guard, nil),",
	// as in our example
	"server.NewStreamableHTTPServer(mcpServer)",
	"protected(server.NewStreamableHTTPServer(mcpServer, server.WithStateful(true)))",
	`"github.com/mark3labs/mcp-go/server"`,
	"\"github.com/mark3labs/mcp-go/server\"\n\t\"github.com/mcp-authd/mcp-authd/examples/mcp-go/mcpguard\"",
)

// buildMCPGo builds mcp-go's fixture unchanged, and with the guard through an overlay. This
// repository does not contain its code.
func buildMCPGo(t *testing.T) (plain, protected string) {
	t.Helper()
	tmp := t.TempDir()
	plain, protected = program.Build(t, "examples/mcp-go", mcpGoFixture), filepath.Join(tmp, "protected")
	dir := strings.TrimSpace(goCommand(t, "list", "-f", "{{.Dir}}", mcpGoFixture))
	source, err := os.ReadFile(filepath.Join(dir, "main.go"))
	if err != nil {
		t.Fatal(err)
	}
	changed := guarded.Replace(string(source))
	if strings.Count(changed, "protected(") != 1 || strings.Count(changed, "mcpguard") != 2 {
		t.Fatal("the fixture of this mcp-go serves in another way: adjust guarded")
	}
	patched, list := filepath.Join(tmp, "main.go"), filepath.Join(tmp, "overlay.json")
	if err := os.WriteFile(patched, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	ours, err := filepath.Abs(mcpGoExample + "/testdata/conformance/main.go")
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {ours: patched}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	goCommand(t, "build", "-overlay", list, "-o", protected, "./testdata/conformance")
	return plain, protected
}

// goCommand runs go in the module of the example.
func goCommand(t *testing.T, command string, args ...string) string {
	t.Helper()
	cmd := exec.Command("go", append([]string{command, "-C", mcpGoExample}, args...)...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", command, err, stderr.String())
	}
	return string(out)
}

func startMCPGo(t *testing.T, binary string) string {
	t.Helper()
	address := nettest.For(t)
	cmd := exec.Command(binary)
	cmd.Env = append(os.Environ(), "CONFORMANCE_ADDR="+address)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed
	})
	waitFor(t, address)
	return (&url.URL{Scheme: "http", Host: address, Path: "/mcp"}).String()
}

// flakyOfMCPGo lists scenarios that fail occasionally, with and without a guard. mcp-go loses
// notifications, as its own list of expected failures states (conformance/server).
var flakyOfMCPGo = []string{"tools-call-with-logging", "tools-call-with-progress"}

// expectedOfMCPGo lists the scenarios that mcp-go's own fixture fails, by revision.
var expectedOfMCPGo = map[string][]string{
	// A tool that the fixture lacks.
	"2025-11-25": {"json-schema-2020-12"},
	"2026-07-28": {
		// Tools and prompts that the fixture lacks.
		"http-custom-header-server-validation",
		"input-required-result-basic-elicitation", "input-required-result-basic-list-roots",
		"input-required-result-basic-sampling",
		"input-required-result-capability-check", "input-required-result-multi-round",
		"input-required-result-multiple-input-requests",
		"input-required-result-non-tool-request", "input-required-result-request-state",
		"input-required-result-result-type",
		"input-required-result-tampered-state", "json-schema-2020-12", "server-stateless",
		// An extension that is not part of a release gate.
		"tasks-capability-negotiation", "tasks-dispatch-and-envelope", "tasks-lifecycle", "tasks-mrtr-composition",
		"tasks-mrtr-input",
		"tasks-request-headers", "tasks-request-state-removal", "tasks-required-task-error", "tasks-wire-fields",
	},
}

// steady returns the failed scenarios that are not flaky.
func steady(scenarios map[string][2]int) map[string][2]int {
	out := maps.Clone(scenarios)
	for _, name := range flakyOfMCPGo {
		delete(out, name)
	}
	return out
}

// TestMCPGo checks that mcp-go's own fixture fails the same scenarios behind the guard as without
// one.
func TestMCPGo(t *testing.T) {
	lane.Long(t, "TestServer runs the suites on another SDK")
	npmtest.Dir(t)
	plain, protected := buildMCPGo(t)
	unguarded, guarded := startMCPGo(t, plain), startMCPGo(t, protected)
	for _, tt := range []struct {
		name, revision string
		args           []string
		least          int // minimum number of passed checks
	}{
		{"RS-38 the suite of 2025-03-26", "2025-03-26", []string{"--suite", "all", "--spec-version", "2025-03-26"}, 3},
		{"RS-38 the suite of 2025-06-18", "2025-06-18", []string{"--suite", "all", "--spec-version", "2025-06-18"}, 52},
		{"RS-38 the requirements of 2025-11-25", "2025-11-25", []string{"--requirements", "2025-11-25"}, 68},
		{"RS-38 the requirements of 2026-07-28", "2026-07-28", []string{"--requirements", "2026-07-28"}, 118},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want, _, _ := runSuite(t, unguarded, tt.args...)
			got, output, _ := runSuite(t, guarded, tt.args...)
			if len(got) == 0 || len(got) != len(want) {
				t.Fatalf("%d scenarios ran without the guard and %d with it:\n%s", len(want), len(got), output)
			}
			want, got = steady(want), steady(got)
			if bad := worse(got, want); bad != "" {
				t.Errorf("fails with the guard and not without it: %s\n%s", bad, output)
			}
			if failed := failures(got); !slices.Equal(failed, expectedOfMCPGo[tt.revision]) {
				t.Errorf("failed: %q, want %q (without the guard: %q)\n%s", failed, expectedOfMCPGo[tt.revision],
					failures(want), output)
			}
			if n := passed(got); n < tt.least {
				t.Errorf("%d checks passed, want %d:\n%s", n, tt.least, output)
			}
			t.Log(regexp.MustCompile(`Total: .*`).FindString(output))
		})
	}
}
