package clients

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/testkit/npmtest"
)

// row is the result of a client: "" for a missing feature, yes, or no with the reason.
type row struct{ byRequest, byDocument, calls, stepsUp, refreshes, revokes string }

// step runs one step and records its outcome. It is yes only if the step succeeds with each kind of
// registration. Steps that depend on a failed step are skipped.
func (*row) step(t *testing.T, outcome *string, name string, run func(*testing.T)) {
	t.Helper()
	if t.Failed() {
		return
	}
	switch ok := t.Run(name, run); {
	case !ok:
		*outcome = "no"
	case *outcome == "":
		*outcome = "yes"
	}
}

func (l *life) step(t *testing.T, outcome *string, name string, run func(*testing.T)) {
	t.Helper()
	l.row.step(t, outcome, name, run)
}

// lacks replaces step for a known limitation. run checks the current behavior and fails once that
// changes. The table contains the reason.
func (l *life) lacks(t *testing.T, outcome *string, reason, name string, run func(*testing.T)) {
	t.Helper()
	was := t.Failed()
	var shown string
	if l.row.step(t, &shown, name, run); !was && shown == "yes" {
		*outcome = reason
	}
}

const (
	tablePath = "../../docs/clients.md"
	liveBegin = "<!-- live -->"
	liveEnd   = "<!-- /live -->"
)

const introduction = `
## Live runs

` + "`go test ./test/clients -update`" + ` writes this table: it runs the released clients themselves against
the built server, with access tokens that live for five seconds. A dash marks what a client does not
do. "With DPoP" means that the MCP server, behind the gateway, takes only tokens that are bound to a
key, and proofs with nonces ([DPoP](dpop.md)).

| Client | Version | Registers by request | Registers by document | Calls a tool | Steps up | Refreshes | Revokes |
|---|---|---|---|---|---|---|---|
`

// compareTable fails if docs/clients.md does not match the results of this run.
func compareTable(t *testing.T, all []*client) {
	t.Helper()
	if testing.Short() {
		return // clients by document are in the second lane
	}
	for _, c := range all {
		if c.row.byRequest == "" || c.row.byDocument == "" {
			t.Logf("%s was not run in every way: %s is not compared", c.name, tablePath)
			return
		}
	}
	var b strings.Builder
	b.WriteString(liveBegin + "\n" + introduction)
	for _, c := range all {
		r := c.row
		cells := []string{c.name, c.version(t), r.byRequest, r.byDocument, r.calls, r.stepsUp, r.refreshes, r.revokes}
		for i, cell := range cells {
			if cell == "" {
				cells[i] = "-"
			}
		}
		b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
	}
	b.WriteString("\n" + liveEnd)
	old, err := os.ReadFile(tablePath)
	if err != nil {
		t.Fatal(err)
	}
	want := withLive(string(old), b.String())
	switch {
	case want == string(old):
	case *update && !t.Failed():
		if err := os.WriteFile(tablePath, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s differs from this run; write it with: go test ./test/clients -update\n%s", tablePath,
			b.String())
	}
}

// withLive replaces the part of the file that this test writes.
func withLive(file, live string) string {
	begin, end := strings.Index(file, liveBegin), strings.Index(file, liveEnd)
	if begin < 0 || end < begin {
		return file + "\n" + live + "\n"
	}
	return file[:begin] + live + file[end+len(liveEnd):]
}

var goSDKVersion = regexp.MustCompile(`(?m)^\s*(?:require )?github\.com/modelcontextprotocol/go-sdk (v\S+)`)

func (c *client) version(t *testing.T) string {
	t.Helper()
	if c.npm == "" {
		gomod, err := os.ReadFile("../../go.mod")
		m := goSDKVersion.FindSubmatch(gomod)
		if err != nil || m == nil {
			t.Fatalf("go-sdk is not in go.mod: %v", err)
		}
		return string(m[1])
	}
	b, err := os.ReadFile(filepath.Join(npmtest.Dir(t), "package-lock.json"))
	if err != nil {
		t.Fatal(err)
	}
	var lock struct {
		Packages map[string]struct{ Version string }
	}
	if err := json.Unmarshal(b, &lock); err != nil {
		t.Fatal(err)
	}
	version := lock.Packages["node_modules/"+c.npm].Version
	if version == "" {
		t.Fatalf("%s is not in package-lock.json", c.npm)
	}
	return c.npm + " " + version
}
