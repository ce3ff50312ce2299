package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestValidateFindsWhatServeRefuses: issue 11, 4.6.
func TestValidateFindsWhatServeRefuses(t *testing.T) {
	dir := t.TempDir()
	writePair(t, dir, "one")
	writePair(t, dir, "two")
	file := filepath.Join(dir, "c.yaml")
	tls := func(cert, key string) string {
		return "tls: {cert: " + filepath.Join(dir, cert) + ", key: " + filepath.Join(dir, key) + "}"
	}
	for _, tt := range []struct{ name, text, want string }{
		{"a good pair", tls("one.crt", "one.key"), ""},
		{"PostgreSQL without a key", "database: {url: postgres://authd@127.0.0.1:1/authd}", "no secret key: with PostgreSQL set secret_key"},
		{"a certificate that is not there", tls("none.crt", "one.key"), "none.crt: no such file"},
		{"a key of another certificate", tls("one.crt", "two.key"), "private key does not match public key"},
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
			if _, out, _ := runs(t, environ, "config", "validate", "--json"); !strings.Contains(out, `"valid": `+map[bool]string{true: "true", false: "false"}[tt.want == ""]) {
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

// writePair writes a certificate and its key.
func writePair(t *testing.T, dir, name string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{name}}
	cert, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, b := range map[string]*pem.Block{name + ".crt": {Type: "CERTIFICATE", Bytes: cert}, name + ".key": {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(filepath.Join(dir, file), pem.EncodeToMemory(b), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
