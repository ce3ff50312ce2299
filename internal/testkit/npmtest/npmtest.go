// Package npmtest finds the npm packages that tests run: Node 22 and real MCP clients.
// test/package-lock.json pins them, and test/install-deps.sh installs them.
package npmtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/testkit/module"
)

// Dir returns the directory with package.json and node_modules. If the packages are not installed,
// Dir skips the test, or fails it with CI=true.
func Dir(tb testing.TB) string {
	tb.Helper()
	dir := module.Path(tb, "test")
	if _, err := os.Stat(filepath.Join(dir, "node_modules", ".bin", "node")); err != nil {
		if os.Getenv("CI") == "true" {
			tb.Fatal("npm packages are not installed: npm ci --prefix test")
		}
		tb.Skip("npm packages are not installed: npm ci --prefix test")
	}
	return dir
}

// Command returns a command that runs with the installed Node and with the installed programs first
// on PATH. It has a separate home directory.
func Command(tb testing.TB, name string, args ...string) *exec.Cmd {
	tb.Helper()
	dir := Dir(tb)
	bin := filepath.Join(dir, "node_modules", ".bin")
	path := filepath.Join(bin, name)
	if _, err := os.Stat(path); err != nil {
		path = name
	}
	cmd := exec.CommandContext(tb.Context(), path, args...)
	home := tb.TempDir()
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"),
		"HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_DATA_HOME="+home, "XDG_CACHE_HOME="+home, "NO_COLOR=1")
	return cmd
}
