// Package clients runs real MCP clients against the built binary. Each discovers the server,
// registers dynamically and by document, signs in, calls a tool, and uses its other features. Only
// the user, and the web server for documents, are part of the tests.
package clients

import (
	"encoding/json"
	"flag"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/lane"
	"github.com/mcp-authd/mcp-authd/internal/testkit/npmtest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/program"
	"github.com/mcp-authd/mcp-authd/internal/testkit/proxytest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

var update = flag.Bool("update", false, "write the table of live runs into docs/clients.md")

// client is a program or a library of another project.
type client struct {
	name     string
	npm      string // npm package; "" for Go's SDK
	redirect string // redirect URI in its document, without the port
	bound    bool   // its server requires tokens that are bound to a key
	live     func(t *testing.T, l *life)
	row      row
}

// TestClients runs each client with dynamic registration and with a document, each time with a new
// server.
func TestClients(t *testing.T) {
	all := []*client{
		{name: "TypeScript SDK v1", npm: "@modelcontextprotocol/sdk", redirect: "http://127.0.0.1/callback",
			live: sdkV1},
		{name: "TypeScript SDK v2", npm: "@modelcontextprotocol/client", redirect: "http://127.0.0.1/callback",
			live: sdkV2},
		{name: "TypeScript SDK v2 with DPoP", npm: "@modelcontextprotocol/client",
			redirect: "http://127.0.0.1/callback", bound: true, live: boundSDK},
		{name: "mcp-remote", npm: "mcp-remote", redirect: "http://localhost/oauth/callback", live: mcpRemote},
		{name: "Inspector CLI", npm: "@modelcontextprotocol/inspector", redirect: "http://127.0.0.1/oauth/callback",
			live: inspector},
		{name: "go-sdk", redirect: "http://localhost/callback", live: goSDK},
		{name: "oauth4webapi", npm: "oauth4webapi", redirect: "http://127.0.0.1/callback", live: strict},
	}
	w := proxytest.Start(t)
	t.Run("live", func(t *testing.T) {
		for _, c := range all {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				if c.npm != "" {
					npmtest.Dir(t) // skips if the packages are missing
				}
				t.Run("by request", func(t *testing.T) { c.live(t, newLife(t, c, w, "", briefTTL)) })
				t.Run("AS-151 AS-153 by document", func(t *testing.T) {
					lane.Long(t, "each client registers by request")
					c.live(t, newLife(t, c, w, c.documentURL(), briefTTL))
				})
			})
		}
	})
	compareTable(t, all)
}

func (c *client) documentURL() string {
	return "https://" + strings.ReplaceAll(strings.ToLower(c.name), " ", "-") + ".example/oauth/client.json"
}

// briefTTL is a short lifetime of access tokens, so that tests can see a refresh. outlived is a
// longer time in seconds.
const (
	briefTTL  = "5s"
	outlived  = 6
	callLimit = 5 * time.Minute // for a call that may include a sign-in
)

// life is one client at one server, with one kind of registration.
type life struct {
	*client
	*demotest.Demo
	web      *proxytest.Web
	document string // URL; "" for dynamic registration
	data     string
}

// logRefreshes makes the log have a line for each refresh.
const logRefreshes = "MCP_AUTHD_AUDIT_DETAIL=full"

func newLife(t *testing.T, c *client, w *proxytest.Web, document, accessTTL string) *life {
	t.Helper()
	l := &life{client: c, web: w, document: document, data: t.TempDir()}
	if document != "" {
		l.publish(t, document, map[string]any{"token_endpoint_auth_method": "none"})
	}
	o := demotest.Options{
		Args: []string{"--data", l.data},
		Env:  append(w.Env(), "MCP_AUTHD_TOKENS_ACCESS_TTL="+accessTTL, logRefreshes),
	}
	if c.bound {
		l.Demo = startBound(t, o)
	} else {
		l.Demo = demotest.Start(t, o)
	}
	return l
}

// publish publishes a metadata document for this client at a URL.
func (l *life) publish(t *testing.T, url string, more map[string]any) {
	t.Helper()
	document := map[string]any{
		"client_id": url, "client_name": l.name, "redirect_uris": []string{l.redirect},
		"grant_types": []string{"authorization_code", "refresh_token"}, "response_types": []string{"code"},
	}
	for name, value := range more {
		document[name] = value
	}
	b, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	l.web.Publish(url, b)
}

// registers runs the step that registers the client and signs in a user.
func (l *life) registers(t *testing.T, run func(*testing.T) string) (whoami string) {
	t.Helper()
	cell, name := &l.row.byRequest, "AS-131 CL-17 registers and signs in"
	if l.document != "" {
		cell, name = &l.row.byDocument, "CL-10 signs in without registering"
	}
	l.step(t, cell, name, func(t *testing.T) {
		whoami = run(t)
		l.checkIdentity(t, whoami, l.document)
	})
	t.Run("OB-01 what it did is one attempt without a fault", l.checkAttempt)
	l.step(t, &l.row.calls, "calls a tool", func(t *testing.T) {
		if !strings.Contains(whoami, "usr_") || !strings.Contains(whoami, l.Issuer) {
			t.Errorf("got %s", whoami)
		}
	})
	return whoami
}

// checkAttempt checks the sign-in log for a client that has signed in and called a tool. All
// entries must belong to one attempt, which succeeded.
func (l *life) checkAttempt(t *testing.T) {
	type attempt struct {
		Reference, Fault, Verdict string
		OK                        bool
	}
	where := []string{"--data", l.data}
	if l.Config != "" {
		where = []string{"--config", l.Config}
	}
	var found []attempt
	wait.Success(t, "there is one attempt, which succeeded", func() error {
		list := append([]string{"attempt", "list", "--json"}, where...)
		out, err := exec.Command(program.Authd(t), list...).Output()
		if err == nil {
			err = json.Unmarshal(out, &found)
		}
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if len(found) != 1 || !found[0].OK {
			return fmt.Errorf("got %+v", found)
		}
		return nil
	})
}

// registerRequest matches the log of a request to the registration endpoint.
var registerRequest = regexp.MustCompile(`"path":"/register"|client\.registered`)

// whoamiClient matches the client in the tool's result, which some clients print as JSON inside
// JSON.
var whoamiClient = regexp.MustCompile(`\\?"client\\?":\s*\\?"([^"\\]+)\\?"`)

// checkIdentity checks that the client used the intended kind of registration.
func (l *life) checkIdentity(t *testing.T, whoami, document string) {
	t.Helper()
	id := ""
	if m := whoamiClient.FindStringSubmatch(whoami); m != nil {
		id = m[1]
	}
	registered := registerRequest.MatchString(l.Log())
	if document == "" {
		if !registered || !strings.HasPrefix(id, "mcp_") {
			t.Errorf("it is %q, and a registration in the log is %t", id, registered)
		}
		return
	}
	if registered || id != document || l.web.Fetches(document) == 0 {
		t.Errorf("it is %q, a registration in the log is %t, and its document was fetched %d times", id, registered,
			l.web.Fetches(document))
	}
}

// events counts the events with a name in the log.
func (l *life) events(name string) int {
	return strings.Count(l.Log(), `"event":"`+name+`"`)
}
