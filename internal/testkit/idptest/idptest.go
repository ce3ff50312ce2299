// Package idptest runs real OpenID providers for tests: Dex, built from the module in test/dex, and
// node-oidc-provider from npm (test/upstream/provider.mjs). Each runs behind a local proxy that
// records requests and can be slow or down.
package idptest

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/testkit/logtest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/npmtest"
)

// User is a user with an account at the provider. They sign in with Email and Password.
type User struct {
	ID       string   `json:"id"`
	Name     string   `json:"name"`
	Email    string   `json:"email"`
	Password string   `json:"password"`
	Groups   []string `json:"groups,omitempty"` // only for node-oidc-provider
}

// These users exist at every provider.
var (
	Alice = User{
		ID: "person-alice-1", Name: "Alice", Email: "alice@example.org", Password: "alice's password",
		Groups: []string{"staff"},
	}
	Bob = User{ID: "person-bob-2", Name: "Bob", Email: "bob@example.net", Password: "bob's password"}
)

// Options configure a provider.
type Options struct {
	// RedirectURIs are the redirect URIs of the only client, mcp-authd.
	RedirectURIs []string
	// TokenTTL is the lifetime of access tokens. Default: one hour.
	TokenTTL time.Duration
	// Host is the host name of the provider. Default: "localhost". Use another name to separate
	// cookies, which browsers store by host and not by port.
	Host string

	// The options below are for node-oidc-provider only.

	// BackChannelLogout is the URI that gets logout tokens, or "".
	BackChannelLogout string
	// Scopes are offered in addition to the usual ones. The user is asked about each.
	Scopes []string
	// Offline requires the scope offline_access for refresh tokens, and the user's consent each
	// time (OpenID Connect Core §11). Otherwise every client gets refresh tokens, and the scope
	// does not exist.
	Offline bool
	// NoIntrospection disables introspection. Clients can then use only user info and refresh.
	NoIntrospection bool
}

// Provider is a running provider. It ends with the test.
type Provider struct {
	Kind                         string // "Dex" or "node-oidc-provider"
	Issuer                       string
	ClientID, ClientSecret       string
	LoginField, PasswordField    string // fields of its login form
	SessionEnd                   string // URL for ending a browser's session, or ""
	RevokesAccess, KeepsSessions bool   // it also revokes access tokens; it has a session cookie

	front *front
	admin string
	log   *logtest.Buffer
}

// Dex starts Dex. Dex has no sessions, so users sign in every time. Its access tokens are JWTs that
// it cannot revoke. Refresh tokens rotate and require the scope offline_access.
func Dex(tb testing.TB, o Options) *Provider {
	tb.Helper()
	p := &Provider{Kind: "Dex", LoginField: "login", PasswordField: "password"}
	p.start(tb, o, exec.Command(dex(tb)))
	return p
}

// Node starts node-oidc-provider. It requires PKCE, has a session cookie, and rotates refresh
// tokens. It revokes everything if a used refresh token is used again.
func Node(tb testing.TB, o Options) *Provider {
	tb.Helper()
	p := &Provider{
		Kind: "node-oidc-provider", LoginField: "login", PasswordField: "password", RevokesAccess: true,
		KeepsSessions: true,
	}
	p.start(tb, o, npmtest.Command(tb, "node", "upstream/provider.mjs"))
	p.SessionEnd = p.Issuer + "/session/end"
	return p
}

// Revoke revokes a user's grant to mcp-authd at the provider.
func (p *Provider) Revoke(tb testing.TB, u User) {
	tb.Helper()
	p.administer(tb, "/revoke", u)
}

// Disable disables a user's account. It works only with node-oidc-provider.
func (p *Provider) Disable(tb testing.TB, u User) {
	tb.Helper()
	p.administer(tb, "/disable", u)
}

func (p *Provider) administer(tb testing.TB, path string, u User) {
	tb.Helper()
	resp, err := http.Post("http://"+p.admin+path+"?user="+url.QueryEscape(u.ID), "", nil)
	if err != nil {
		tb.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(resp.Body)
		tb.Fatalf("%s: %s answered %s: %s", p.Kind, path, resp.Status, body)
	}
}

// Log returns the provider's output so far.
func (p *Provider) Log() string { return p.log.String() }

func (p *Provider) start(tb testing.TB, o Options, cmd *exec.Cmd) {
	tb.Helper()
	if o.TokenTTL == 0 {
		o.TokenTTL = time.Hour
	}
	if o.Host == "" {
		o.Host = "localhost"
	}
	p.front = newFront(tb, o.Host)
	p.Issuer = "http://" + p.front.host
	p.ClientID, p.ClientSecret = "mcp-authd", "a secret of at least 32 characters, for tests"
	config, err := json.Marshal(map[string]any{
		"issuer": p.Issuer, "client_id": p.ClientID, "client_secret": p.ClientSecret, "redirect_uris": o.RedirectURIs,
		"users": []User{Alice, Bob}, "token_ttl": int(o.TokenTTL / time.Second),
		"backchannel_logout": o.BackChannelLogout, "scopes": o.Scopes, "introspection": !o.NoIntrospection,
		"offline": o.Offline,
	})
	if err != nil {
		tb.Fatal(err)
	}
	p.log = &logtest.Buffer{}
	cmd.Stderr = p.log
	address := p.run(tb, cmd, config)
	p.front.open(tb, address)
}

// run starts the program, which ends with its standard input. So it ends with the test, or when
// this process ends for any reason.
func (p *Provider) run(tb testing.TB, cmd *exec.Cmd, config []byte) (address string) {
	tb.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	ended := make(chan struct{})
	tb.Cleanup(func() {
		in.Close()
		select {
		case <-ended:
		case <-time.After(time.Minute):
			_ = cmd.Process.Kill()
			tb.Errorf("%s did not end\n%s", p.Kind, p.Log())
		}
	})
	var ready struct{ Address, Admin string }
	answer := make(chan error, 1)
	go func() {
		line, err := bufio.NewReader(out).ReadBytes('\n')
		if err == nil {
			err = json.Unmarshal(line, &ready)
		}
		answer <- err
		_ = cmd.Wait() // the exit status does not matter
		close(ended)
	}()
	if _, err := in.Write(append(config, '\n')); err != nil {
		tb.Fatal(err)
	}
	select {
	case err := <-answer:
		if err != nil {
			tb.Fatalf("%s did not start: %v\n%s", p.Kind, err, p.Log())
		}
	case <-time.After(time.Minute):
		tb.Fatalf("%s did not start in a minute\n%s", p.Kind, p.Log())
	}
	p.admin = ready.Admin
	return ready.Address
}
