package deploy

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/nettest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
	"github.com/mcp-authd/mcp-authd/metadata"
)

// TestCaddy checks that a user can sign in, and a stream works, through deploy/proxy/Caddyfile
// (DL-04).
func TestCaddy(t *testing.T) {
	program := installed(t, "caddy")
	listens := nettest.For(t)
	f := newFront(t, listens, nettest.For(t))
	f.run(t, f.caddy(t, program, "MCP_AUTHD_HOSTS="+f.issuer, "MCP_AUTHD_ADDRESS="+f.backend))
	f.serve(t)
	f.everything(t)
}

// caddy returns the command that runs our Caddyfile. The test uses the certificate of the front
// instead of an authority's, and does not listen on port 80.
func (f *front) caddy(t *testing.T, program string, env ...string) *exec.Cmd {
	t.Helper()
	const site = "{$MCP_AUTHD_HOSTS:auth.example.com} {\n"
	text := edit(t, "Caddyfile", [][2]string{{site, site + "\ttls " + f.roots + " " + f.key + "\n"}})
	dir := t.TempDir()
	file := filepath.Join(dir, "Caddyfile")
	text = "{\n\tadmin off\n\tauto_https disable_redirects\n}\n" + text
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "run", "--config", file, "--adapter", "caddyfile")
	cmd.Env = append(append(os.Environ(), "HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir), env...)
	return cmd
}

// TestNginx checks that a user can sign in, and a stream works, through deploy/proxy/nginx.conf
// (DL-04).
func TestNginx(t *testing.T) {
	program := installed(t, "nginx")
	listens, plain := nettest.For(t), nettest.For(t)
	f := newFront(t, listens, nettest.For(t))
	text := edit(t, "nginx.conf", [][2]string{
		{"listen 80;", "listen " + plain + ";"},
		{"listen 443 ssl http2;", "listen " + listens + " ssl http2;"},
		{"server_name auth.example.com mcp.example.com;", "server_name localhost;"},
		{"server 127.0.0.1:8414;", "server " + f.backend + ";"},
		{"/etc/letsencrypt/live/auth.example.com/fullchain.pem", f.roots},
		{"/etc/letsencrypt/live/auth.example.com/privkey.pem", f.key},
	})
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	main := "daemon off; pid " + dir + "/pid; error_log stderr;\nevents {}\nhttp {\naccess_log off;\n"
	if os.Getuid() == 0 {
		main = "user root;\n" + main
	}
	for _, at := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		main += at + "_temp_path " + filepath.Join(dir, at) + ";\n"
	}
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, []byte(main+text+"\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.run(t, exec.Command(program, "-p", dir, "-c", file, "-e", "stderr"))
	f.serve(t)
	f.everything(t)

	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Get("http://" + plain + "/account")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if to := resp.Header.Get("Location"); resp.StatusCode != http.StatusPermanentRedirect ||
		!strings.HasPrefix(to, "https://") || !strings.HasSuffix(to, "/account") {
		t.Errorf("DL-04: over http: %s %s", resp.Status, to)
	}
}

// edit returns a file of deploy/proxy with the operator's values replaced.
func edit(t *testing.T, file string, own [][2]string) string {
	t.Helper()
	b, err := os.ReadFile("../../deploy/proxy/" + file)
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	for _, one := range own {
		if !strings.Contains(text, one[0]) {
			t.Fatalf("deploy/proxy/%s has no %q", file, one[0])
		}
		text = strings.ReplaceAll(text, one[0], one[1])
	}
	return text
}

// everything runs the tests of each proxy.
func (f *front) everything(t *testing.T) {
	t.Run("DL-04 a person signs in, and a client lists tools", func(t *testing.T) {
		demotest.Login(t, demotest.NewPerson("alice", password), f.issuer+"/mcp", "SSL_CERT_FILE="+f.roots)
	})
	t.Run("DL-04 the first event of a stream is not held back", f.stream)
	t.Run("AS-14 RS-06 each well-known path leads to its document", f.documents)
	t.Run("DL-04 the server sees the client's address, and not one that the client names", f.addresses)
	t.Run("DL-04 a challenge arrives as it was sent", func(t *testing.T) {
		resp, err := http.Post(f.issuer+"/mcp", "application/json", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		want := `resource_metadata="` + f.issuer + `/.well-known/oauth-protected-resource/mcp"`
		if got := resp.Header.Get("WWW-Authenticate"); resp.StatusCode != http.StatusUnauthorized ||
			!strings.Contains(got, want) {
			t.Errorf("got %s %s, want %s", resp.Status, got, want)
		}
	})
}

// documents reads the metadata of the issuer and of the MCP server.
func (f *front) documents(t *testing.T) {
	paths := append(metadata.AuthorizationServerPaths(f.issuer), metadata.ProtectedResourcePath(f.issuer+"/mcp"))
	for _, path := range paths {
		resp, err := http.Get(f.issuer + path)
		if err != nil {
			t.Fatal(err)
		}
		var document struct{ Issuer, Resource string }
		err = json.NewDecoder(resp.Body).Decode(&document)
		resp.Body.Close()
		if of := document.Issuer + document.Resource; err != nil || !strings.HasPrefix(of, f.issuer) {
			t.Errorf("%s: got %s, %q (%v)", path, resp.Status, of, err)
		}
	}
}

// addresses sends a forged client address, and checks the address in the server's log.
func (f *front) addresses(t *testing.T) {
	const marked = "/.well-known/seen-by-the-log"
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, f.issuer+marked, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Forwarded-For", "203.0.113.9")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	var said string
	wait.Until(t, "the log of the server has the request", func() bool { // the server logs it after the response
		lines := slices.DeleteFunc(strings.Split(f.log.String(), "\n"),
			func(line string) bool { return !strings.Contains(line, marked) })
		said = strings.Join(lines, "\n")
		return said != ""
	})
	if !strings.Contains(said, clientAddress) || strings.Contains(said, "203.0.113.9") {
		t.Errorf("the log of the server has:\n%s", said)
	}
}
