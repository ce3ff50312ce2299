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

// pages are README and the manual.
func pages(t *testing.T) []string {
	t.Helper()
	found := []string{"../../README.md"}
	for _, pattern := range []string{"../../docs/*.md", "../../docs/*/*.md"} {
		more, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, more...)
	}
	return found
}

// TestSnippets compiles the Go that people copy from README, the manual, and the package
// comment of mcpresource (issue 11, 4.8).
func TestSnippets(t *testing.T) {
	found := map[string]int{}
	for _, path := range pages(t) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(path)
		if got, want := strings.Count(string(text), "```go\n"), len(snippet.FindAllString(string(text), -1)); got != want {
			t.Errorf("%s has %d blocks of Go, of which %d can be read", name, got, want)
		}
		for i, m := range snippet.FindAllStringSubmatch(string(text), -1) {
			found[name]++
			t.Run(fmt.Sprint(name, " ", i+1), func(t *testing.T) {
				if m[2] == "" {
					t.Fatalf("no comment says what this stands among:\n%s", m[3])
				}
				if out, err := compile(t, filepath.Join("../..", m[1]), around(m[2], m[3])); err != nil {
					t.Errorf("%v\n%s\n%s", err, out, m[3])
				}
			})
		}
	}
	if found["protect.md"] < 6 || found["README.md"] < 1 {
		t.Errorf("found %v", found)
	}
	t.Run("the package comment of mcpresource", func(t *testing.T) {
		text, err := os.ReadFile("../../mcpresource/doc.go")
		if err != nil {
			t.Fatal(err)
		}
		var code strings.Builder
		for _, line := range regexp.MustCompile(`(?m)^//\t(.*)$`).FindAllStringSubmatch(string(text), -1) {
			code.WriteString(line[1] + "\n")
		}
		first, _, _ := strings.Cut(code.String(), "g.Register(mux, yourMCPHandler)\n")
		among := "ctx context.Context, mux *http.ServeMux, yourMCPHandler http.Handler"
		if out, err := compile(t, "../..", around(among, first+"g.Register(mux, yourMCPHandler)\n")); err != nil {
			t.Errorf("%v\n%s\n%s", err, out, first)
		}
	})
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
		if strings.HasPrefix(among, name+" ") || strings.Contains(among, ", "+name+" ") {
			continue // it is a variable
		}
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
