// Package upstream tests mcp-authd with real OpenID providers, Dex and node-oidc-provider, with a
// real browser, a real MCP client and a real MCP server.
package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/internal/testkit/idptest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/logtest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/nettest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/program"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
	"github.com/mcp-authd/mcp-authd/mcpresource"
	"github.com/mcp-authd/mcp-authd/mcpresource/gosdk"
)

// The installations set how often a user is checked at the provider, and how long a resource server may
// cache the status of a token.
const (
	checkEvery = 2 * time.Second
	statusTTL  = time.Second
)

// installation is mcp-authd with its providers and one MCP server.
type installation struct {
	t      *testing.T
	place  string // the address of the server before it starts
	issuer string
	mcpURL string
	data   string
	config map[string]any
	log    *logtest.Buffer
	broker *mcpresource.Broker
}

const (
	resourceClient = "notes-server"
	resourceSecret = "the secret of the notes server, of enough length"
)

// plan prepares an installation at a free address, with its MCP server and without providers.
func plan(t *testing.T) *installation {
	t.Helper()
	place := nettest.For(t)
	i := &installation{
		t: t, place: place, issuer: "http://" + place, data: t.TempDir(), log: &logtest.Buffer{},
	}
	i.serveMCP()
	i.config = map[string]any{
		"issuer": i.issuer, "data_dir": i.data, "management": map[string]any{"listen": ""},
		"secret_key": strings.Repeat("k", 40),
		"resources": []any{map[string]any{"uri": i.mcpURL, "name": "Notes", "scopes": []any{
			map[string]any{"name": "mcp", "description": "use it", "default": true},
			map[string]any{"name": "notes:write", "description": "write notes"},
		}}},
		"tokens": map[string]any{"status_ttl": statusTTL.String()},
		"clients": []any{
			map[string]any{
				"id": resourceClient, "name": "Notes server", "secret": resourceSecret, "resources": []string{i.mcpURL},
			},
		},
		"login":      map[string]any{"local": false},
		"thirdparty": []any{},
		"log":        map[string]any{"level": "info", "format": "json"},
	}
	return i
}

// callback returns the redirect URI of a connector.
func (i *installation) callback(id string) string { return i.issuer + "/callback/" + id }

// dex adds Dex as a provider.
func (i *installation) dex(id string, o idptest.Options, more map[string]any) *idptest.Provider {
	i.t.Helper()
	o.RedirectURIs = append(o.RedirectURIs, i.callback(id))
	p := idptest.Dex(i.t, o)
	i.connect(id, p, map[string]any{"scopes": []string{"openid", "email", "profile", "offline_access"}}, more)
	return p
}

// node adds node-oidc-provider.
func (i *installation) node(id string, o idptest.Options, more map[string]any) *idptest.Provider {
	i.t.Helper()
	o.RedirectURIs = append(o.RedirectURIs, i.callback(id))
	o.BackChannelLogout = i.callback(id) + "/logout"
	p := idptest.Node(i.t, o)
	i.connect(id, p, nil, more)
	return p
}

func (i *installation) connect(id string, p *idptest.Provider, settings ...map[string]any) {
	connector := map[string]any{
		"id": id, "type": "oidc", "name": p.Kind, "issuer": p.Issuer, "client_id": p.ClientID,
		"client_secret": p.ClientSecret,
		"check_every":   checkEvery.String(),
	}
	for _, s := range settings {
		maps.Copy(connector, s)
	}
	i.config["thirdparty"] = append(i.config["thirdparty"].([]any), connector)
}

// start runs the server and waits until it is ready.
func (i *installation) start() {
	i.t.Helper()
	i.replica(i.place)
}

// replica runs a server at an address.
func (i *installation) replica(address string) {
	i.t.Helper()
	cmd := exec.Command(program.Authd(i.t), "serve", "--config", i.configFile())
	cmd.Env = append(os.Environ(), "HOME="+i.t.TempDir(), "MCP_AUTHD_LISTEN="+address)
	cmd.Stderr, cmd.Stdout = i.log, i.log
	if err := cmd.Start(); err != nil {
		i.t.Fatal(err)
	}
	i.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			i.t.Errorf("the server did not exit with 0: %v", err)
		}
		if i.t.Failed() {
			i.t.Logf("what the server logged, requests left out:\n%s", requests.ReplaceAllString(i.log.String(), ""))
		}
	})
	wait.Until(i.t, "the server is ready", func() bool {
		resp, err := http.Get("http://" + address + "/readyz")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

// requests matches the frequent log lines about requests.
var requests = regexp.MustCompile(`(?m)^.*"msg":"request".*\n`)

func (i *installation) configFile() string {
	i.t.Helper()
	b, err := json.MarshalIndent(i.config, "", " ") // YAML is a superset of JSON
	if err != nil {
		i.t.Fatal(err)
	}
	file := filepath.Join(i.data, "mcp-authd.yaml")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		i.t.Fatal(err)
	}
	return file
}

// user adds a user with a local password.
func (i *installation) user(name, password string) {
	i.t.Helper()
	cmd := exec.Command(program.Authd(i.t), "user", "add", name, "--password-stdin", "--config", i.configFile())
	cmd.Stdin = strings.NewReader(password)
	if out, err := cmd.CombinedOutput(); err != nil {
		i.t.Fatalf("%v\n%s", err, out)
	}
}

// events counts an event in the log.
func (i *installation) events(name string) int {
	return strings.Count(i.log.String(), `"event":"`+name+`"`)
}

// caller is the result of the tool whoami.
type caller struct {
	Subject, Client string
	Scopes          []string
}

// borrowed is the result of the tool calendar: the provider's response to the token that the tool
// got.
type borrowed struct {
	Status int
	Body   string
}

// serveMCP runs the MCP server. It verifies tokens locally, with the issuer's keys and status
// lists, and gets the provider's tokens of its callers by token exchange.
func (i *installation) serveMCP() {
	mux := http.NewServeMux()
	host := httptest.NewServer(mux)
	i.t.Cleanup(host.Close)
	i.mcpURL = host.URL + "/mcp"
	var err error
	if i.broker, err = mcpresource.NewBroker(mcpresource.BrokerConfig{
		Issuer: i.issuer, ClientID: resourceClient, ClientSecret: resourceSecret, CacheTTL: -1}); err != nil {
		i.t.Fatal(err)
	}
	v, err := mcpresource.NewJWTValidator(mcpresource.JWTConfig{Issuer: i.issuer, RequireStatus: true})
	if err != nil {
		i.t.Fatal(err)
	}
	g, err := mcpresource.New(mcpresource.Config{
		Resource: i.mcpURL, AuthorizationServers: []string{i.issuer}, Validator: v,
		Policy: &mcpresource.Rules{Base: []string{"mcp"}},
	})
	if err != nil {
		i.t.Fatal(err)
	}
	s := mcp.NewServer(&mcp.Implementation{Name: "notes", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "whoami"},
		func(_ context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, caller, error) {
			p, ok := gosdk.Principal(r)
			if !ok {
				return nil, caller{}, errors.New("no caller")
			}
			return nil, caller{p.Subject, p.ClientID, p.Scopes}, nil
		})
	mcp.AddTool(s, &mcp.Tool{Name: "calendar"}, i.calendar)
	g.Register(mux, gosdk.Unguarded(g, s, &gosdk.Options{ShowAll: true}))
}

// theCalendar holds the arguments of the tool calendar: the URL of an API at the provider, and the
// required provider and scope.
type theCalendar struct{ Provider, Scope, API string }

func (i *installation) calendar(
	ctx context.Context, _ *mcp.CallToolRequest, in theCalendar,
) (*mcp.CallToolResult, borrowed, error) {
	token, err := i.broker.Token(ctx, in.Provider, in.Scope)
	if err != nil {
		return nil, borrowed{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, in.API, nil)
	if err != nil {
		return nil, borrowed{}, err
	}
	token.SetAuthHeader(req)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, borrowed{}, err
	}
	defer resp.Body.Close()
	var b bytes.Buffer
	_, err = b.ReadFrom(resp.Body)
	return nil, borrowed{resp.StatusCode, b.String()}, err
}
