package examples

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// snippet is a piece of Go in a page, below a comment that says what it stands among:
//
//	<!-- go: ctx context.Context, server *mcp.Server -->
//
// or, in the module of an example, <!-- go -C examples/mcp-go: ... -->.
var snippet = regexp.MustCompile("(?s)(?:<!-- go(?: -C (\\S+))?: ([^\n]*) -->\n)?```go\n(.*?)```")

// packages are what snippets may use, by name.
var packages = map[string]string{
	"context": "context", "log": "log", "http": "net/http", "mcp": "github.com/modelcontextprotocol/go-sdk/mcp",
	"authserver": ours + "authserver", "dcr": ours + "dcr", "gosdk": ours + "mcpresource/gosdk", "keys": ours + "keys",
	"mcpresource": ours + "mcpresource", "sqlite": ours + "storage/sqlite", "storage": ours + "storage",
	"server": "github.com/mark3labs/mcp-go/server", "mcpguard": ours + "examples/mcp-go/mcpguard",
}

const ours = "github.com/mcp-authd/mcp-authd/"

// TestSnippets compiles what people copy from docs/protect.md.
func TestSnippets(t *testing.T) {
	page, err := os.ReadFile("../../docs/protect.md")
	if err != nil {
		t.Fatal(err)
	}
	all := snippet.FindAllStringSubmatch(string(page), -1)
	if len(all) < 6 {
		t.Fatalf("found %d snippets", len(all))
	}
	for i, m := range all {
		t.Run(fmt.Sprint(i+1), func(t *testing.T) {
			if m[2] == "" {
				t.Fatalf("no comment says what this stands among:\n%s", m[3])
			}
			if out, err := compile(t, filepath.Join("../..", m[1]), around(m[2], m[3])); err != nil {
				t.Errorf("%v\n%s\n%s", err, out, m[3])
			}
		})
	}
	t.Run("what does not compile fails", func(t *testing.T) {
		if _, err := compile(t, "../..", around("ctx context.Context", "mcpresource.Nothing(ctx)")); err == nil {
			t.Error("it compiled")
		}
	})
}

// around is a Go file around a snippet.
func around(among, text string) string {
	var b strings.Builder
	b.WriteString("package snippet\n\n")
	for _, name := range slices.Sorted(maps.Keys(packages)) {
		uses := regexp.MustCompile(`(^|[^.\w])` + name + `\.[A-Z]`)
		if uses.MatchString(text) || uses.MatchString(among) {
			fmt.Fprintf(&b, "import %q\n", packages[name])
		}
	}
	fmt.Fprintf(&b, "\nfunc snippet(%s) {\n%s}\n", among, text)
	return b.String()
}

// compile compiles a file as if it were a package of the module in folder.
func compile(t *testing.T, folder, source string) (string, error) {
	t.Helper()
	tmp := t.TempDir()
	at, err := filepath.Abs(filepath.Join(folder, "testdata", "snippet", "snippet.go"))
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {at: filepath.Join(tmp, "snippet.go")}})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"snippet.go": source, "overlay.json": string(overlay)} {
		if err := os.WriteFile(filepath.Join(tmp, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.Command("go", "build", "-C", folder, "-overlay", filepath.Join(tmp, "overlay.json"), "./testdata/snippet").CombinedOutput()
	return string(out), err
}
