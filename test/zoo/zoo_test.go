// Package zoo replays the requests of common MCP clients against the built binary. Each has a
// fixture that was recorded or derived from its source. Only the signing-in user, and the web
// server for documents, are part of the tests.
package zoo

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"flag"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/nettest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/program"
	"github.com/mcp-authd/mcp-authd/internal/testkit/proxytest"
)

var update = flag.Bool("update", false, "write docs/clients.md")

// exception is a client that cannot and must not get access. The tests check its failure, and the
// table contains the reason.
type exception struct {
	row   row
	check func(r *replay, t *testing.T, s server, w *proxytest.Web)
}

var exceptions = map[string]exception{
	"roo-code": {row{registers: "no: it has no OAuth; use mcp-remote"}, (*replay).challenged},
	"copilot-cli-cimd": {
		row{registers: "yes", signsIn: "no: it sends the path /callback, its document lists only /"}, (*replay).refused,
	},
}

// TestClients replays every client. It then deletes the database and replays the client with its
// old id and refresh token.
func TestClients(t *testing.T) {
	fixtures := readFixtures(t)
	if len(fixtures) != 55 {
		t.Fatalf("got %d fixtures, want 55", len(fixtures))
	}
	w := proxytest.Start(t)
	key := publishKey(t, w)
	var replays []*replay
	for _, way := range ways(fixtures) {
		replays = append(replays, &replay{way: way, row: &row{}, key: key})
		publishDocument(t, w, way)
	}
	data := t.TempDir()
	demo := startDemo(t, w, data, unclaimed(t, fixtures))
	s := of(demo)

	t.Run("with a new server", func(t *testing.T) {
		for _, r := range replays {
			t.Run(r.title(), func(t *testing.T) {
				t.Parallel()
				r.first(t, s, w, data)
			})
		}
	})
	demo.Stop(t)
	t.Run("OB-01 no attempt of theirs has a fault", func(t *testing.T) { faultless(t, data) })
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(filepath.Join(data, "mcp-authd.db"+suffix)); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	startDemo(t, w, data, strings.TrimPrefix(s.issuer, "http://"))
	t.Run("after the database was lost", func(t *testing.T) {
		for _, r := range replays {
			t.Run(r.title(), func(t *testing.T) {
				t.Parallel()
				r.again(t, s, w)
			})
		}
	})
	compareTable(t, replays)
}

// first runs a client until its first refresh.
func (r *replay) first(t *testing.T, s server, w *proxytest.Web, data string) {
	if e, ok := exceptions[r.Name]; ok {
		*r.row = e.row
		e.check(r, t, s, w)
		return
	}
	r.row.step(t, &r.row.registers, "registers", func(t *testing.T) { r.identify(t, s, data) })
	r.row.step(t, &r.row.signsIn, "AS-67 AS-68 signs in", func(t *testing.T) {
		if r.Name == "mcp-remote" {
			r.preflight(t, s)
		}
		r.signIn(t, s)
		if r.mode == "cimd" && w.Fetches(r.DocumentURL) == 0 {
			t.Errorf("%s was never fetched", r.DocumentURL)
		}
	})
	r.row.step(t, &r.row.calls, "AS-81 AS-122 gets tokens and calls a tool", func(t *testing.T) {
		r.exchange(t, s)
		r.call(t, s)
		if r.sign && w.Fetches(jwksURL) == 0 {
			t.Errorf("%s was never fetched, so no token was verified", jwksURL)
		}
	})
	r.row.step(t, &r.row.refreshes, "AS-94 refreshes", func(t *testing.T) {
		for range 2 { // the rotated token must also work
			r.renew(t, s)
			r.call(t, s)
		}
	})
}

// identify gives the client its id.
func (r *replay) identify(t *testing.T, s server, data string) {
	t.Helper()
	r.method = "none"
	switch r.mode {
	case "dcr":
		if r.Name == "opencode" || r.Name == "claude-ai-dcr" {
			r.register(t, s) // these clients register twice and use the second registration
		}
		r.register(t, s)
	case "cimd":
		r.clientID = r.DocumentURL
	case "preregistered":
		r.addClient(t, data)
	default:
		t.Fatalf("unknown mode %q", r.mode)
	}
}

// faultless checks the sign-in log: successful clients have no fault, and each exception has its
// known fault.
func faultless(t *testing.T, data string) {
	out, err := exec.CommandContext(t.Context(), program.Authd(t), "attempt", "list", "--json", "--limit", "1000",
		"--data", data).Output()
	var attempts []struct {
		ID      string `json:"client_id"`
		Name    string `json:"client_name"`
		OK      bool
		Verdict string
		Fault   string
		Known   string
	}
	if err == nil {
		err = json.Unmarshal(out, &attempts)
	}
	if err != nil {
		t.Fatal(err)
	}
	succeeded, known := 0, 0
	for _, a := range attempts {
		switch {
		case a.OK:
			succeeded++
		case strings.HasPrefix(a.Known, "GitHub Copilot CLI"):
			known++
		case a.Fault != "":
			t.Errorf("%s (%s) has the fault %s: %s", a.Name, a.ID, a.Fault, a.Verdict)
		}
	}
	if succeeded < 55 || known != 1 {
		t.Errorf("of %d attempts %d succeeded, want 55 or more; %d have the known fault of Copilot CLI, want 1",
			len(attempts), succeeded, known)
	}
}

// again replays a client that has not noticed that the server lost its database.
func (r *replay) again(t *testing.T, s server, w *proxytest.Web) {
	if _, ok := exceptions[r.Name]; ok {
		return // it had no access before
	}
	if r.refresh == "" {
		t.Skip("it did not get in") // the test has already failed
	}
	if r.mode == "preregistered" {
		if r.configured(t); !t.Failed() {
			r.row.survives = "yes, when it is in the configuration"
		}
		return
	}
	r.row.step(t, &r.row.survives, "signs in with the old id", func(t *testing.T) {
		r.deadRefresh(t, s)
		r.signIn(t, s)
		r.exchange(t, s)
		r.call(t, s)
	})
}

// challenged checks that a client without OAuth gets an error that explains the failure.
func (r *replay) challenged(t *testing.T, s server, _ *proxytest.Web) {
	got := r.post(t, s, nil, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`)
	if got.status != http.StatusUnauthorized || !strings.HasPrefix(got.header.Get("WWW-Authenticate"), "Bearer ") {
		t.Errorf("got %d with %q, want 401 with a challenge", got.status, got.header.Get("WWW-Authenticate"))
	}
}

// refused: the redirect URI is not in the document. The server must not redirect, and the page must
// show the expected URI.
func (r *replay) refused(t *testing.T, s server, w *proxytest.Web) {
	r.clientID = r.DocumentURL
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, r.authorizeURL(s), nil)
	req.Header.Set("Accept", "text/html")
	got := do(t, req)
	if got.status != http.StatusBadRequest || got.header.Get("Location") != "" {
		t.Errorf("got %d to %q, want 400 and no redirect", got.status, got.header.Get("Location"))
	}
	if w.Fetches(r.DocumentURL) == 0 {
		t.Errorf("%s was never fetched", r.DocumentURL)
	}
	for _, want := range []string{r.RedirectURI, "http://127.0.0.1:33418/"} {
		if !strings.Contains(string(got.raw), want) {
			t.Errorf("the page does not name %s:\n%s", want, got.raw)
		}
	}
}

// preflight: mcp-remote fetches the authorization URL before it opens a browser.
func (r *replay) preflight(t *testing.T, s server) {
	t.Helper()
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, r.authorizeURL(s), nil)
	req.Header.Set("Accept", "application/json")
	if got := do(t, req); got.status >= 400 {
		t.Fatalf("its preflight got %d %s", got.status, got.raw)
	}
}

// unclaimed returns an address with a port that no client uses, because the user takes a redirect
// to any other address as a return to the client.
func unclaimed(t *testing.T, fixtures []fixture) string {
	t.Helper()
	taken := map[string]bool{}
	for _, f := range fixtures {
		if u, err := url.Parse(f.RedirectURI); err == nil {
			taken[u.Port()] = true
		}
	}
	for {
		address := nettest.For(t)
		if _, port, _ := net.SplitHostPort(address); !taken[port] {
			return address
		}
	}
}

func startDemo(t *testing.T, w *proxytest.Web, data, listen string) *demotest.Demo {
	t.Helper()
	return demotest.Start(t, demotest.Options{Args: []string{"--data", data, "--listen", listen}, Env: serverEnv(w)})
}

func serverEnv(w *proxytest.Web) []string {
	return append(w.Env(), "MCP_AUTHD_REGISTRATION_RATE_PER_MINUTE=100000")
}

// publishDocument publishes a client's document at the URL that is its id.
func publishDocument(t *testing.T, w *proxytest.Web, client *way) {
	t.Helper()
	if client.mode != "cimd" {
		return
	}
	if client.Document == nil {
		t.Fatalf("%s has no document", client.Name)
	}
	w.Publish(client.DocumentURL, withMembers(client.Document, documentsWithout[client.Name]))
}

// jwksURL is the jwks_uri in the documents of the clients that sign.
const jwksURL = "https://chatgpt.com/oauth/jwks.json"

// publishKey creates the key of the clients that sign, and publishes it.
func publishKey(t *testing.T, w *proxytest.Web) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	set, err := json.Marshal(jose.JSONWebKeySet{
		Keys: []jose.JSONWebKey{{Key: &key.PublicKey, KeyID: keyID, Algorithm: "RS256", Use: "sig"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	w.Publish(jwksURL, set)
	return key
}

// addClient creates the client as an operator, for Basic. claude.ai posts its secret in any case.
func (r *replay) addClient(t *testing.T, data string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program.Authd(t), "client", "add", "--name", "Claude", "--redirect-uri",
		r.RedirectURI, "--auth-method", "client_secret_basic", "--json", "--data", data)
	cmd.Stderr = io.Discard
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var made struct{ ID, Secret string }
	if err := json.Unmarshal(out, &made); err != nil || made.Secret == "" {
		t.Fatalf("client add: %v %s", err, out)
	}
	r.clientID, r.secret, r.method = made.ID, made.Secret, "client_secret_post"
}
