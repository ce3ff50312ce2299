package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/testkit/certtest"
)

// TestValidateFindsWhatServeRefuses checks config validate against serve (issue 11, 4.6).
func TestValidateFindsWhatServeRefuses(t *testing.T) {
	dir := t.TempDir()
	certtest.WritePair(t, dir, "one")
	certtest.WritePair(t, dir, "two")
	file := filepath.Join(dir, "c.yaml")
	tls := func(cert, key string) string {
		return "tls: {cert: " + filepath.Join(dir, cert) + ", key: " + filepath.Join(dir, key) + "}"
	}
	for _, tt := range []struct{ name, text, want string }{
		{"a good pair", tls("one.crt", "one.key"), ""},
		{"PostgreSQL without a key", "database: {url: postgres://authd@127.0.0.1:1/authd}",
			"no secret key: with PostgreSQL set secret_key"},
		{"a certificate that is not there", tls("none.crt", "one.key"), "none.crt: no such file"},
		{"a key of another certificate", tls("one.crt", "two.key"), "two.key cannot be used: tls: private key does not match public key; name a pair"},
		{"a port out of range", "listen: 127.0.0.1:99999", `listen: "127.0.0.1:99999" is not an address`},
		{"a gateway to nowhere", "resources: [{uri: \"https://h/mcp\", upstream: {url: \"ftp://h/mcp\"}}]", "upstream"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := os.WriteFile(file, []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			environ := []string{"HOME=" + filepath.Join(dir, "home"), "MCP_AUTHD_CONFIG=" + file}
			code, _, errs := runs(t, environ, "config", "validate")
			if (code == exitOK) != (tt.want == "") || !strings.Contains(errs, tt.want) {
				t.Errorf("got %d %q, want %q", code, errs, tt.want)
			}
			if _, out, _ := runs(t, environ, "config", "validate", "--json"); !strings.Contains(out,
				`"valid": `+map[bool]string{true: "true", false: "false"}[tt.want == ""]) {
				t.Errorf("--json: got %s", out)
			}
			if tt.want == "" {
				return
			}
			if code, _, serves := runs(t, environ, "serve"); code != exitFailure || !strings.Contains(serves, tt.want) {
				t.Errorf("serve: got %d %q, want %q", code, serves, tt.want)
			}
		})
	}
	code, _, _ := runs(t, []string{"HOME=" + filepath.Join(dir, "new")}, "config", "validate")
	if _, err := os.Stat(filepath.Join(dir, "new")); code != exitOK || err == nil {
		t.Errorf("a new installation: got %d, and the directory is there: %v", code, err == nil)
	}
}
