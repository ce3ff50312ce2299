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

// among matches the comment before a block of Go, which declares its context:
//
//	<!-- go: ctx context.Context, server *mcp.Server -->
//
// or, in the module of an example, <!-- go -C examples/mcp-go: ... -->.
var among = regexp.MustCompile(`^<!-- go(?: -C (\S+))?: (.*) -->$`)

// packages lists the packages that snippets may use, by name.
var packages = map[string]string{
	"context": "context", "crypto": "crypto", "log": "log", "slog": "log/slog", "sql": "database/sql",
	"time": "time",
	"http": "net/http", "mcp": "github.com/modelcontextprotocol/go-sdk/mcp",
	"authserver": ours + "authserver", "dcr": ours + "dcr", "gosdk": ours + "mcpresource/gosdk",
	"mcpserver": ours + "mcpserver", "thirdparty": ours + "thirdparty",
	"os": "os", "filepath": "path/filepath", "signal": "os/signal", "syscall": "syscall",
	"mcpclient": ours + "mcpclient", "keychain": ours + "mcpclient/keychain",
	"testing": "testing", "strings": "strings", "mcptest": ours + "mcpresource/mcptest",
	"gosdktest": ours + "mcpresource/gosdk/gosdktest", "mcpservertest": ours + "mcpserver/mcpservertest",
	"mcpresource": ours + "mcpresource", "sqlite": ours + "internal/storage/sqlite",
	"postgres": ours + "mcpresource/postgres",
	"otelmcp":  ours + "mcpresource/otelmcp", "trace": "go.opentelemetry.io/otel/trace",
	"server": "github.com/mark3labs/mcp-go/server", "mcpguard": ours + "examples/mcp-go/mcpguard",
}

const ours = "github.com/mcp-authd/mcp-authd/"

func checkGo(t *testing.T, b block) {
	m := among.FindStringSubmatch(b.mark)
	if m == nil {
		t.Fatalf("no comment says what this stands among:\n%s", b.text)
	}
	if out, err := compile(t, filepath.Join(root, m[1]), around(m[2], b.text)); err != nil {
		t.Errorf("%v\n%s\n%s", err, out, b.text)
	}
}

// TestPackageComment compiles the Go in the package comment of mcpresource.
func TestPackageComment(t *testing.T) {
	t.Run("the package comment of mcpresource", func(t *testing.T) {
		text, err := os.ReadFile(filepath.Join(root, "mcpresource/doc.go"))
		if err != nil {
			t.Fatal(err)
		}
		var code strings.Builder
		for _, line := range regexp.MustCompile(`(?m)^//\t(.*)$`).FindAllStringSubmatch(string(text), -1) {
			code.WriteString(line[1] + "\n")
		}
		first, _, _ := strings.Cut(code.String(), "g.Register(mux, yourMCPHandler)\n")
		among := "ctx context.Context, mux *http.ServeMux, yourMCPHandler http.Handler"
		if out, err := compile(t, root, around(among, first+"g.Register(mux, yourMCPHandler)\n")); err != nil {
			t.Errorf("%v\n%s\n%s", err, out, first)
		}
	})
	t.Run("what does not compile fails", func(t *testing.T) {
		if _, err := compile(t, root, around("ctx context.Context", "mcpresource.Nothing(ctx)")); err == nil {
			t.Error("it compiled")
		}
	})
}

// around returns a Go file that contains a snippet.
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

// compile compiles a file as a package of the module in folder.
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
	out, err := exec.Command("go", "build", "-C", folder, "-overlay", filepath.Join(tmp, "overlay.json"),
		"./testdata/snippet").CombinedOutput()
	return string(out), err
}
