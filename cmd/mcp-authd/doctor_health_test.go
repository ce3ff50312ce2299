package main

import (
	"database/sql"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/testkit/certtest"
	"github.com/mcp-authd/mcp-authd/storage/sqlite"
)

// all are the findings as text.
func (d *doctor) all() string {
	var b strings.Builder
	for _, f := range d.findings {
		b.WriteString(f.Level + " " + f.Check + " " + f.What + "\n")
	}
	return b.String()
}

// TestDoctorOnHealth: what doctor called good and was not (issue 11, 4.3).
func TestDoctorOnHealth(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "mcp-authd.db")
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Remember(t.Context(), "issuer", []byte("https://old.example")); err != nil {
		t.Fatal(err)
	}
	s.Close()
	look := func() string {
		t.Helper()
		d := testDoctor(t,
			"issuer: https://new.example\ndata_dir: "+dir+"\nsecret_key: 0123456789012345678901234567890123456789abc\n")
		d.database(t.Context())
		d.app.Close()
		return d.all()
	}
	if got := look(); !strings.Contains(got,
		"warning issuer it was https://old.example when a server last started, and is https://new.example") ||
		!strings.Contains(got, "ok database reachable") {
		t.Errorf("a changed issuer: %s", got)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(
		"INSERT INTO schema_version (version, name, applied_at) VALUES (9000, 'of the future', 0)"); err != nil {
		t.Fatal(err)
	}
	db.Close()
	if got := look(); !strings.Contains(got, "fail database") || !strings.Contains(got, "newer version") ||
		strings.Contains(got, "ok database") {
		t.Errorf("a newer schema: %s", got)
	}
}

// TestDoctorOnProxies: who forgets trusted_proxies is told, and who has a renewed
// certificate that is not served.
func TestDoctorOnProxies(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	resp, err := server.Client().Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	const forgotten = "trusted_proxies is empty"
	for _, tt := range []struct {
		name, config string
		want         bool
	}{
		{"forgotten", "", true},
		{"declared", "trusted_proxies: [127.0.0.1/32]\n", false},
		{"no proxy", "tls: {cert: a, key: b}\n", false},
	} {
		d := testDoctor(t, "issuer: https://auth.example\n"+tt.config)
		d.proxied(resp)
		if got := strings.Contains(d.all(), forgotten); got != tt.want {
			t.Errorf("%s: %s", tt.name, d.all())
		}
	}

	dir := t.TempDir()
	certtest.WritePair(t, dir, "127.0.0.1")
	certtest.WritePair(t, dir, "example.com")
	for name, want := range map[string]bool{"example.com": true, "127.0.0.1": false} {
		d := testDoctor(t,
			"tls: {cert: "+filepath.Join(dir, name+".crt")+", key: "+filepath.Join(dir, name+".key")+"}\n")
		resp.Request.URL.Host = "example.com"
		d.lifetime(resp)
		if got := strings.Contains(d.all(), "served with another certificate"); got != want {
			t.Errorf("with the certificate of %s: %s", name, d.all())
		}
	}
}
