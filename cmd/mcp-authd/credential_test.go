package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCommandsFindTheCredential checks that commands find the master key where the packaged unit
// reads it, because systemd passes the credential only to the service (DL-04). With another
// configuration, they ignore it.
func TestCommandsFindTheCredential(t *testing.T) {
	etc := filepath.Join(t.TempDir(), "etc")
	write := func(name, text string) string {
		file := filepath.Join(etc, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	config := "data_dir: " + filepath.Join(etc, "data") + "\n"
	packaged, other := write("mcp-authd/config.yaml", config), write("other/config.yaml", config)
	handed := filepath.Dir(write("run/secret_key", strings.Repeat("k", 32)))
	service := []string{"HOME=" + t.TempDir(), "CREDENTIALS_DIRECTORY=" + handed, "MCP_AUTHD_CONFIG=" + packaged}
	if code, _, errs := runs(t, service, "user", "add", "alice", "--password-stdin"); code != exitOK {
		t.Fatalf("as the service: got %d %s", code, errs)
	}
	list := func(file string) (int, string, string) {
		return runs(t, []string{"HOME=" + t.TempDir(), "MCP_AUTHD_CONFIG=" + file}, "user", "list")
	}
	if code, _, errs := list(packaged); code != exitFailure || !strings.Contains(errs, "secret.key is missing") {
		t.Errorf("without it: got %d %s", code, errs)
	}
	write("credstore/mcp-authd.secret_key", strings.Repeat("k", 32)+"\n")
	if code, out, errs := list(packaged); code != exitOK || !strings.Contains(out, "alice") {
		t.Errorf("got %d %s", code, errs)
	}
	if code, _, errs := list(other); code != exitFailure || !strings.Contains(errs, "secret.key is missing") {
		t.Errorf("beside another configuration: got %d %s", code, errs)
	}
	write("credstore/mcp-authd.secret_key", strings.Repeat("x", 32))
	if code, _, errs := list(packaged); code != exitFailure || !strings.Contains(errs, "is not the one") {
		t.Errorf("with another key: got %d %s", code, errs)
	}
}
