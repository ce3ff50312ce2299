package doctor

import (
	"database/sql"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/installation"
	"github.com/mcp-authd/mcp-authd/internal/label"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/internal/storage/sqlite"
	"github.com/mcp-authd/mcp-authd/internal/testkit/certtest"
)

// all returns the findings as text.
func (d *doctor) all() string {
	var b strings.Builder
	for _, f := range d.findings {
		b.WriteString(f.Level + " " + f.Check + " " + f.What + "\n")
	}
	return b.String()
}

// TestDoctorOnHealth checks problems that doctor once missed (issue 11, 4.3).
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
		d.in.Close()
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

// TestDoctorOnProxies checks that doctor reports missing trusted_proxies, and a renewed certificate
// that is not served.
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

func TestDoctorOnAges(t *testing.T) {
	dir := t.TempDir()
	path, copied := filepath.Join(dir, "mcp-authd.db"), filepath.Join(t.TempDir(), "copy.db")
	open := func() *sqlite.Store {
		t.Helper()
		s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	config := "issuer: https://auth.example\ndata_dir: " + dir +
		"\nsecret_key: 0123456789012345678901234567890123456789abc\nkeys: {rotate_every: 720h}\n"
	look := func(days int) string {
		t.Helper()
		d := testDoctor(t, config)
		d.now = func() time.Time { return time.Now().Add(time.Duration(days) * 24 * time.Hour) }
		d.in.Store = open()
		defer d.in.Close()
		d.ages(t.Context())
		d.keyAge(storage.SigningKey{ID: "k1", ActivatedAt: time.Now()})
		return d.all()
	}
	if got := look(0); got != "skipped backup no backup was made by backup or export; "+
		"if they are made by other means, try them as well\n" {
		t.Errorf("DL-02 without a backup: %s", got)
	}
	if err := testDoctor(t, config).in.Backup(t.Context(), copied); err != nil {
		t.Fatal(err)
	}
	if got := look(6); !strings.HasPrefix(got, "ok backup the last one was made on ") || strings.Contains(got, "k1") {
		t.Errorf("DL-02 after six days: %s", got)
	}
	if got := look(8); !strings.HasPrefix(got, "warning backup the last backup is 8 days old\n") {
		t.Errorf("DL-02 after eight days: %s", got)
	}
	of := time.Now().Add(-24 * time.Hour)
	found := installation.Restorable{File: copied, WrittenAt: of}
	if _, err := testDoctor(t, config).in.Restore(t.Context(), found); err != nil {
		t.Fatal(err)
	}
	if got := look(5); !strings.HasPrefix(got,
		"ok backup this database was made of the one of "+label.Moment(of)+", and none was made since\n") {
		t.Errorf("DL-02 five days after a restore: %s", got)
	}
	if got := look(7); !strings.HasPrefix(got, "warning backup this database was made of the backup of "+
		label.Moment(of)+", 8 days old, and none was made since\n") {
		t.Errorf("DL-02 a week after a restore: %s", got)
	}
	if err := testDoctor(t, config).in.Backup(t.Context(), copied+"2"); err != nil {
		t.Fatal(err)
	}
	if got := look(6); !strings.HasPrefix(got, "ok backup the last one was made on ") {
		t.Errorf("DL-02 a backup since the restore: %s", got)
	}
	if got := look(32); strings.Contains(got, "k1") {
		t.Errorf("DL-02 a key of 32 days, replaced every 30: %s", got)
	}
	if got := look(34); !strings.Contains(got, "warning keys signing key k1 has signed for 34 days") {
		t.Errorf("DL-02 a key of 34 days, replaced every 30: %s", got)
	}
}
