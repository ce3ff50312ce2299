package assembly

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/internal/testkit/certtest"
)

// TestCertificateReload checks that a renewed certificate is served without a restart, and half a
// renewal is not (issue 11, 4.3).
func TestCertificateReload(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	var log bytes.Buffer
	a := Parts{Log: slog.New(slog.NewTextHandler(&log, nil)), Config: &config.Loaded{Config: &config.Config{}}}
	a.Config.TLS.Cert, a.Config.TLS.Key = cert, key
	write := func(name string) (certPEM, keyPEM []byte) {
		t.Helper()
		certtest.WritePair(t, dir, name)
		read := func(file string) []byte {
			b, err := os.ReadFile(filepath.Join(dir, file))
			if err != nil {
				t.Fatal(err)
			}
			return b
		}
		return read(name + ".crt"), read(name + ".key")
	}
	put := func(path string, content []byte) {
		t.Helper()
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c1, k1 := write("first.example")
	put(cert, c1)
	put(key, k1)
	served, err := a.certificate()
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	name := func() string { return served.at(now).Leaf.DNSNames[0] }
	// Half a renewal: a file that does not match the other, is truncated, or is missing.
	_, other := write("other.example")
	for what, half := range map[string]func(){
		"DL-01: a key without its certificate": func() { put(key, append(other, '\n')) },
		"DL-01: half of a certificate":         func() { put(cert, c1[:len(c1)/2]) },
		"DL-01: no key":                        func() { os.Remove(key) },
	} {
		half()
		log.Reset()
		for range 2 {
			now = now.Add(lookEvery)
			if got := name(); got != "first.example" {
				t.Errorf("%s: %s is served", what, got)
			}
		}
		if n := strings.Count(log.String(), "cannot be used"); n != 1 {
			t.Errorf("%s: it is said %d times: %s", what, n, log.String())
		}
		put(cert, c1)
		put(key, k1)
		now = now.Add(lookEvery)
		name()
	}
	log.Reset()
	c2, k2 := write("second.example")
	put(cert, append(c2, '\n'))
	now = now.Add(lookEvery)
	if got := name(); got != "first.example" || !strings.Contains(log.String(), "cannot be used") {
		t.Errorf("with half a renewal %s is served; the log: %s", got, log.String())
	}
	put(key, append(k2, '\n', '\n'))
	if got := name(); got != "first.example" {
		t.Errorf("the files are looked at with every handshake: %s", got)
	}
	now = now.Add(lookEvery)
	if got := name(); got != "second.example" {
		t.Errorf("after the renewal %s is served", got)
	}
	// The test's certificates are valid for an hour. Less than a quarter of it is then left.
	log.Reset()
	served.warned = time.Time{}
	leaf := served.at(now).Leaf
	now = leaf.NotAfter.Add(-time.Minute)
	leaf.NotBefore = leaf.NotAfter.Add(-time.Hour)
	for range 3 {
		now = now.Add(lookEvery)
		name()
	}
	if n := strings.Count(log.String(), "ends soon: renew it"); n != 1 {
		t.Errorf("DL-01: that it ends is said %d times: %s", n, log.String())
	}
}
