package e2e

import (
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/nettest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/pgtest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/program"
)

// house is an installation that moves between databases, while an application and a browser stay.
type house struct {
	t       *testing.T
	dir     string
	address string
	demo    *demotest.Demo
	server  *replica
	person  *demotest.Person // alice with her browser
	client  string
	refresh string
	access  []string // tokens from the time before each move
}

// config writes the configuration for a database. "" is SQLite.
func (h *house) config(database string) string {
	h.t.Helper()
	yaml := "issuer: http://" + h.address + "\ndata_dir: " + filepath.Join(h.dir, "data") + "\nsecret_key: " +
		strings.Repeat("k", 40) + "\nmanagement: {listen: \"\"}\n" +
		"resources: [{uri: \"http://127.0.0.1:9/mcp\", name: R, scopes: [{name: mcp, description: use it, default: true}]}]\n" +
		"clients: [{id: checker, secret: 0123456789012345678901234567890123456789, grant_types: [client_credentials], " +
		"resources: [\"http://127.0.0.1:9/mcp\"]}]\n"
	if database != "" {
		yaml += "database: {url: \"" + database + "\"}\n"
	}
	f, err := os.CreateTemp(h.dir, "*.yaml")
	if err != nil {
		h.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(yaml); err != nil {
		h.t.Fatal(err)
	}
	return f.Name()
}

func (h *house) run(in io.Reader, args ...string) string {
	h.t.Helper()
	c := exec.Command(program.Authd(h.t), args...)
	c.Stdin = in
	out, err := c.CombinedOutput()
	if err != nil {
		h.t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return string(out)
}

// authorize visits the authorization endpoint with the user's browser, and stores the tokens.
func (h *house) authorize() map[string]any {
	h.t.Helper()
	back, err := h.person.Visit(h.demo.Issuer + "/authorize?" + authorizeQuery(h.t, h.demo, h.client).Encode())
	if err != nil {
		h.t.Fatal(err)
	}
	status, tokens := post(h.t, h.demo.Issuer+"/token", url.Values{
		"grant_type": {"authorization_code"}, "client_id": {h.client}, "code": {back.Query().Get("code")},
		"code_verifier": {verifier},
	})
	if status != http.StatusOK {
		h.t.Fatalf("got %d %v", status, tokens)
	}
	return tokens
}

func (h *house) keep(tokens map[string]any) {
	h.refresh = tokens["refresh_token"].(string)
	h.access = append(h.access, tokens["access_token"].(string))
}

// move exports the installation from one database, imports it into another, and starts a server
// there.
func (h *house) move(from, to string) {
	h.t.Helper()
	h.server.stop()
	file := filepath.Join(h.t.TempDir(), "authd.export")
	h.run(nil, "export", file, "--config", from)
	h.run(nil, "import", file, "--config", to)
	h.server = startReplica(h.t, to, h.address)
}

// active introspects a token and reports whether it is active.
func (h *house) active(token string) bool {
	h.t.Helper()
	form := url.Values{"token": {token}}
	req, err := http.NewRequestWithContext(h.t.Context(), http.MethodPost, h.demo.Issuer+"/introspect",
		strings.NewReader(form.Encode()))
	if err != nil {
		h.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.SetBasicAuth("checker", "0123456789012345678901234567890123456789")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		h.t.Fatalf("%d %s %v", resp.StatusCode, b, err)
	}
	return strings.Contains(string(b), `"active":true`)
}

// stays checks that the move has no visible effect.
func (h *house) stays(where string) {
	h.t.Helper()
	for i, token := range h.access {
		if !h.active(token) {
			h.t.Errorf("DL-02 %s: access token %d is not active", where, i)
		}
	}
	status, tokens := post(h.t, h.demo.Issuer+"/token", url.Values{
		"grant_type": {"refresh_token"}, "client_id": {h.client}, "refresh_token": {h.refresh},
	})
	if status != http.StatusOK {
		h.t.Fatalf("DL-02 %s: the application cannot refresh: %d %v", where, status, tokens)
	}
	h.keep(tokens)
	seen := len(h.person.Pages)
	h.authorize()
	for _, page := range h.person.Pages[seen:] {
		if strings.Contains(page, `type="password"`) {
			h.t.Errorf("DL-02 %s: the person has to sign in again", where)
		}
	}
}

// TestMoving moves from SQLite to PostgreSQL and back, while an application and a browser stay.
func TestMoving(t *testing.T) {
	t.Parallel()
	h := &house{t: t, dir: t.TempDir(), address: nettest.For(t)}
	h.demo = &demotest.Demo{Issuer: "http://" + h.address, MCPURL: "http://127.0.0.1:9/mcp"}
	const password = "correct horse battery"
	old, big := h.config(""), h.config(pgtest.Start(t).Database(t))
	h.run(strings.NewReader(password), "user", "add", "alice", "--password-stdin", "--config", old)
	h.server = startReplica(t, old, h.address)
	h.client = register(t, h.demo)
	h.person = demotest.NewPerson("alice", password)
	h.keep(h.authorize())
	revoked := h.authorize()
	if status, out := post(t, h.demo.Issuer+"/revoke", url.Values{
		"client_id": {h.client}, "token": {revoked["refresh_token"].(string)},
	}); status != http.StatusOK {
		t.Fatalf("got %d %v", status, out)
	}
	h.stays("before")

	h.move(old, big)
	h.stays("in PostgreSQL")
	if h.active(revoked["access_token"].(string)) {
		t.Error("DL-02 a token that was revoked before the move is active")
	}
	h.run(nil, "audit", "verify", "--config", big)

	if err := os.Rename(filepath.Join(h.dir, "data"), filepath.Join(h.dir, "before")); err != nil {
		t.Fatal(err)
	}
	h.move(big, old)
	h.stays("back in SQLite")
	if out := h.run(nil, "audit", "list", "--json", "--config", old); !strings.Contains(out, "token.refreshed") {
		t.Errorf("DL-02 the earlier audit: %s", out)
	}
	h.run(nil, "audit", "verify", "--config", old)
}
