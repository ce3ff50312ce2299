package doctor

import (
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/config"
	"github.com/mcp-authd/mcp-authd/internal/installation"
	"github.com/mcp-authd/mcp-authd/internal/storage/sqlite"
)

// testDoctor returns a doctor with a configuration.
func testDoctor(t *testing.T, text string) *doctor {
	t.Helper()
	file := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := config.Load(config.Source{File: file})
	if err != nil {
		t.Fatal(err)
	}
	d := newDoctor(installation.Host{})
	d.in = installation.Quiet(l, installation.Host{})
	return d
}

// last returns the last finding as text.
func (d *doctor) last() string {
	if len(d.findings) == 0 {
		return ""
	}
	f := d.findings[len(d.findings)-1]
	return f.Level + " " + f.Check + " " + f.What
}

func TestDoctorOnFiles(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	private := filepath.Join(dir, "private")
	if err := os.Mkdir(private, 0o700); err != nil {
		t.Fatal(err)
	}
	mount := filepath.Join(dir, "..2026_11_21")
	if err := os.Mkdir(mount, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		path string
		mode os.FileMode
		want string
	}{
		{filepath.Join(dir, "a"), 0o600, ""},
		{filepath.Join(dir, "b"), 0o640, ""},
		{filepath.Join(dir, "c"), 0o644, "fail files it is readable to every user of this machine"},
		{filepath.Join(private, "d"), 0o644, "warning files only its directory keeps others from it"},
		{filepath.Join(mount, "e"), 0o644, "warning files it is readable to every user in the container"},
	} {
		t.Run(filepath.Base(tt.path), func(t *testing.T) {
			if err := os.WriteFile(tt.path, nil, tt.mode); err != nil {
				t.Fatal(err)
			}
			d := newDoctor(installation.Host{})
			if d.private("it", tt.path); !strings.HasPrefix(d.last(), tt.want) || tt.want == "" && d.last() != "" {
				t.Errorf("got %q, want %q", d.last(), tt.want)
			}
		})
	}
	for text, want := range map[string]bool{
		"issuer: https://auth.example.com":                                         false,
		"database: {url: postgres://authd@db/authd}":                               false,
		"database: {url: postgres://authd:pw@db/authd}":                            true,
		"secret_key: a-very-secret-key-of-more-than-32-bytes":                      true,
		"thirdparty: [{id: a, type: google, client_id: x, client_secret: y}]":      true,
		"clients: [{id: a, secret: b}]":                                            true,
		"thirdparty: [{id: a, type: google, client_id: x, scopes: [openid]}]":      false,
		"registration: {documents_proxy: 'http://proxy.example.com:3128'}":         false,
		"registration: {documents_proxy: 'http://user:pw@proxy.example.com:3128'}": true,
	} {
		if got := testDoctor(t, text).in.Config.HoldsSecrets(); got != want {
			t.Errorf("%s: holds secrets: got %v, want %v", text, got, want)
		}
	}
}

func TestDoctorOnTime(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	d := newDoctor(installation.Host{})
	d.now = func() time.Time { return now }
	for left, want := range map[time.Duration]string{
		-time.Hour: "fail tls it expired on 2026-11-21", time.Hour: "warning tls it expires on 2026-11-21",
		90 * 24 * time.Hour: "ok tls it is good until 2027-02-19",
	} {
		d.expiry("it", "", &x509.Certificate{NotBefore: now.Add(-30 * 24 * time.Hour), NotAfter: now.Add(left)})
		if d.last() != want {
			t.Errorf("%s: got %q, want %q", left, d.last(), want)
		}
	}
	d.expiry("it", "", &x509.Certificate{NotBefore: now.Add(time.Hour), NotAfter: now.Add(24 * time.Hour)})
	if !strings.HasPrefix(d.last(), "fail tls it is not valid before") {
		t.Errorf("got %q", d.last())
	}
}

// TestDoctorOnIssuer checks other responses at the server's address.
func TestDoctorOnIssuer(t *testing.T) {
	var answer func(w http.ResponseWriter, r *http.Request)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { answer(w, r) }))
	defer s.Close()
	says := func(status int, body string) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "https://elsewhere.example.com/")
			w.WriteHeader(status)
			w.Write([]byte(strings.ReplaceAll(body, "ISSUER", s.URL)))
		}
	}
	for name, tt := range map[string]struct {
		answer func(http.ResponseWriter, *http.Request)
		want   string
	}{
		"a redirect": {
			says(302, ""),
			"fail issuer clients cannot read " + s.URL +
				"/.well-known/oauth-authorization-server: it redirects to https://elsewhere.example.com/",
		},
		"a page": {
			says(200, "<html>"),
			"fail issuer clients cannot read " + s.URL +
				"/.well-known/oauth-authorization-server: the answer is not JSON",
		},
		"an error": {
			says(502, ""),
			"fail issuer clients cannot read " + s.URL +
				"/.well-known/oauth-authorization-server: the answer is 502 Bad Gateway",
		},
		"another issuer": {
			says(200, `{"issuer":"https://auth.example.com"}`),
			"fail issuer " + s.URL +
				`/.well-known/oauth-authorization-server is answered by another issuer, "https://auth.example.com"`,
		},
		"no key set": {
			says(200, `{"issuer":"ISSUER","jwks_uri":"http://127.0.0.1:1/"}`),
			"fail issuer the key set http://127.0.0.1:1/ cannot be read: connect: connection refused",
		},
		"other keys": {
			says(200, `{"issuer":"ISSUER","jwks_uri":"ISSUER/keys","keys":[{"kid":"b"}]}`),
			"fail issuer " + s.URL +
				"/keys has none of the keys of this database: another installation answers, or a cache",
		},
		"our keys": {
			says(200, `{"issuer":"ISSUER","jwks_uri":"ISSUER/keys","keys":[{"kid":"a"}]}`),
			"ok issuer its key set is the one of this database",
		},
	} {
		t.Run(name, func(t *testing.T) {
			answer = tt.answer
			d := testDoctor(t, "issuer: "+s.URL)
			d.running, d.kids = true, []string{"a"}
			if d.issuer(t.Context()); d.last() != tt.want {
				t.Errorf("got  %q\nwant %q", d.last(), tt.want)
			}
		})
	}
}

// TestDoctorOnServer checks the responses of the management listener.
func TestDoctorOnServer(t *testing.T) {
	status := http.StatusOK
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/readyz" {
			w.WriteHeader(status)
			w.Write([]byte(map[int]string{200: `{"status":"ready"}`, 503: `{"status":"not ready"}`}[status]))
		}
	}))
	defer s.Close()
	address := s.Listener.Addr().String()
	for _, tt := range []struct {
		name, management string
		status           int
		want             string
	}{
		{"ready", address, 200, "ok server it runs on " + address + " and is ready"},
		{"not ready", address, 503,
			"fail server it runs and is not ready: http://" + address +
				"/readyz answered 503 Service Unavailable not ready; the log of the server says why"},
		{"another program", address, 204,
			"fail server it runs and is not ready: http://" + address +
				"/readyz answered 204 No Content, and not as mcp-authd does: another program has that address; see management.listen and listen"},
		{"no server there", "127.0.0.1:1", 200,
			"warning server a process listens on " + address + ", and none on management.listen (127.0.0.1:1)"},
		{"none", `""`, 200, "ok server a process listens on " + address},
	} {
		t.Run(tt.name, func(t *testing.T) {
			status = tt.status
			d := testDoctor(t, "listen: "+address+"\nmanagement: {listen: "+tt.management+"}")
			if d.server(t.Context()); d.last() != tt.want {
				t.Errorf("got  %q\nwant %q", d.last(), tt.want)
			}
		})
	}
}

// TestDoctorOnHost checks a proxy that changes Host (usability 6).
func TestDoctorOnHost(t *testing.T) {
	pages := http.NewCrossOriginProtection().Handler(
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadRequest) }),
	)
	for host, want := range map[string]string{
		"": "", "backend:8414": "fail issuer a proxy on the way changes the Host header: some browsers cannot sign in",
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/language" { // not a step of a sign-in, which would be recorded as failed
				t.Errorf("asked %s", r.URL.Path)
			}
			if host != "" {
				r.Host = host
			}
			pages.ServeHTTP(w, r)
		}))
		d := testDoctor(t, "issuer: "+s.URL)
		if d.hostKept(t.Context()); d.last() != want {
			t.Errorf("%q: got %q, want %q", host, d.last(), want)
		}
		s.Close()
	}
}

// TestDoctorOnADirectoryThatCannotBeWritten checks that the finding names the user and the mode
// (usability 6).
func TestDoctorOnADirectoryThatCannotBeWritten(t *testing.T) {
	there := t.TempDir()
	for path, want := range map[string]string{
		there: "fail files the data directory " + there + " (drwx",
		filepath.Join(there, "a", "b"): "fail files the data directory " + filepath.Join(there, "a", "b") +
			" does not exist, and ",
	} {
		d := newDoctor(installation.Host{})
		d.access = func(string) error { return os.ErrPermission }
		d.directory(path)
		if !strings.HasPrefix(d.last(), want) || !strings.Contains(d.last(), installation.CurrentUser()) {
			t.Errorf("got %q, want %q and the user", d.last(), want)
		}
	}
}

// TestDoctorOnTheSpool checks that doctor reports if queued audit entries cannot be stored in a
// file (OB-04).
func TestDoctorOnTheSpool(t *testing.T) {
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "audit")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		path   string
		mode   os.FileMode
		access error
		want   string
	}{
		{filepath.Join(dir, "none"), 0, nil, ""},
		{dir, 0o700, nil, ""},
		{dir, 0o755, nil, "warning files others have access to"},
		{dir, 0o700, os.ErrPermission, "warning files " + dir + " is no directory that " + installation.CurrentUser()},
		{file, 0, nil, "warning files " + file + " is no directory that " + installation.CurrentUser()},
	} {
		d := newDoctor(installation.Host{})
		d.access = func(string) error { return tt.access }
		if tt.mode != 0 {
			if err := os.Chmod(tt.path, tt.mode); err != nil {
				t.Fatal(err)
			}
		}
		d.spool(tt.path)
		got := ""
		if len(d.findings) > 0 {
			got = d.last()
		}
		if !strings.HasPrefix(got, tt.want) || (tt.want == "") != (got == "") {
			t.Errorf("%s %s: got %q, want %q", tt.path, tt.mode, got, tt.want)
		}
	}
}

// TestDoctorOnLeftCopies checks that doctor names the copy of a killed restore (DL-02).
func TestDoctorOnLeftCopies(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	killed, err := os.MkdirTemp("", "mcp-authd-restore")
	if err == nil {
		err = os.WriteFile(filepath.Join(killed, sqlite.RehearsalName), []byte("secret"), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		age  time.Duration
		want string
	}{
		{0, ""},
		{2 * time.Hour, "warning files a restore that was killed has left a copy in " + killed + "\n"},
	} {
		d := testDoctor(t, "issuer: https://auth.example\n")
		d.now = func() time.Time { return time.Now().Add(c.age) }
		if d.leftCopies(); d.all() != c.want {
			t.Errorf("after %s: got %q, want %q", c.age, d.all(), c.want)
		}
	}
}
