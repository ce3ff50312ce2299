package e2e

import (
	"context"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/auth/extauth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/nettest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/program"
)

const companyConfig = `issuer: ISSUER
data_dir: DIR
secret_key: cccccccccccccccccccccccccccccccccccccccc
events: {receivers: [{id: partner, url: WIRE/events, audience: PARTNER, networks: [127.0.0.0/8]}]}
`

// partnerEntry trusts the company, whose metadata contain its keys.
const partnerEntry = `trust:
- {id: company, kind: enterprise, issuer: COMPANY, create_people: true, event_audience: [PARTNER]}
`

const companyPassword = "correct horse battery staple"

// company is one of our servers as a corporate identity provider. Its users sign in at the client
// desk, whose id at the partner, another of our servers, is agent. The partner gets security events
// through a wire.
type company struct {
	t       *testing.T
	issuer  string
	config  string
	server  *replica
	desk    *oauthex.ClientCredentials
	partner *trusting
	wire    *wire
}

// newPair starts both servers. The partner has one replica per address.
func newPair(t *testing.T, database string, addresses ...string) *company {
	t.Helper()
	c := &company{t: t, wire: newWire(t, addresses[0])}
	address, dir, partner := nettest.For(t), t.TempDir(), "http://"+addresses[0]
	c.issuer, c.config = "http://"+address, filepath.Join(dir, "mcp-authd.yaml")
	names := strings.NewReplacer("ISSUER", c.issuer, "DIR", dir, "WIRE", c.wire.URL,
		"PARTNER", partner, "COMPANY", c.issuer)
	if err := os.WriteFile(c.config, []byte(names.Replace(companyConfig)), 0o600); err != nil {
		t.Fatal(err)
	}
	c.server = startReplica(t, c.config, address)
	c.partner = newTrusting(t, names.Replace(partnerEntry), database, addresses, nil)
	var desk struct {
		ID     string `json:"id"`
		Secret string `json:"secret"`
	}
	added := c.run("", "client", "add", "--id", "desk", "--name", "Desk", "--scope", "openid", "--json",
		"--auth-method", "client_secret_basic", "--redirect-uri", redirect)
	if err := json.Unmarshal([]byte(added), &desk); err != nil || desk.Secret == "" {
		t.Fatalf("client add: %v %s", err, added)
	}
	c.desk = credentials(desk.ID, desk.Secret)
	c.run("", "trust", "issue", "add", c.partner.issuer, "--resource", c.partner.resource, "--scope", "mcp",
		"--client", "desk=agent")
	return c
}

func credentials(id, secret string) *oauthex.ClientCredentials {
	return &oauthex.ClientCredentials{
		ClientID: id, ClientSecretAuth: &oauthex.ClientSecretAuth{ClientSecret: secret},
	}
}

// run runs an operator command at the company.
func (c *company) run(in string, args ...string) string {
	c.t.Helper()
	cmd := exec.Command(program.Authd(c.t), append(args, "--config", c.config)...)
	var failed strings.Builder
	cmd.Stdin, cmd.Stderr = strings.NewReader(in), &failed
	out, err := cmd.Output()
	if err != nil {
		c.t.Fatalf("%v: %v %s %s", args, err, out, &failed)
	}
	return string(out)
}

// hire creates an account.
func (c *company) hire(name string) *demotest.Person {
	c.t.Helper()
	c.run(companyPassword, "user", "add", name, "--password-stdin")
	return demotest.NewPerson(name, companyPassword)
}

// signIn signs in a user at the desk, as the Go SDK does for any company.
func (c *company) signIn(ctx context.Context, p *demotest.Person) (*oauth2.Token, error) {
	return extauth.PerformOIDCLogin(ctx, &extauth.OIDCLoginConfig{
		IssuerURL: c.issuer, Credentials: c.desk, RedirectURL: redirect, Scopes: []string{"openid"},
	}, func(_ context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
		back, err := p.Visit(args.URL)
		if err != nil {
			return nil, err
		}
		q := back.Query()
		return &auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}, nil
	})
}

// exchange exchanges an ID token for an ID-JAG for the partner.
func (c *company) exchange(idToken string) (string, error) {
	out, err := oauthex.ExchangeToken(c.t.Context(), c.issuer+"/token", &oauthex.TokenExchangeRequest{
		RequestedTokenType: oauthex.TokenTypeIDJAG, SubjectToken: idToken, SubjectTokenType: oauthex.TokenTypeIDToken,
		Audience: c.partner.issuer, Resource: c.partner.resource, Scope: []string{"mcp"},
	}, c.desk, nil)
	if err != nil {
		return "", err
	}
	return out.AccessToken, nil
}

// asserted signs in a user, and returns the ID token and an ID-JAG.
func (c *company) asserted(p *demotest.Person) (idToken, assertion string) {
	c.t.Helper()
	out, err := c.signIn(c.t.Context(), p)
	if err != nil {
		c.t.Fatalf("%v\n%s", err, c.server.log.String())
	}
	idToken, _ = out.Extra("id_token").(string)
	if assertion, err = c.exchange(idToken); err != nil {
		c.t.Fatal(err)
	}
	return idToken, assertion
}

// admitted signs in a user, and returns an access token of the partner.
func (c *company) admitted(p *demotest.Person) string {
	c.t.Helper()
	_, assertion := c.asserted(p)
	return c.partner.token(c.partner.asAgent(assertion))
}

// of returns the company for a subtest.
func (c *company) of(t *testing.T) *company {
	out := *c
	out.t, out.partner = t, c.partner.of(t)
	return &out
}

// wire receives the partner's security events. It records each of them and forwards it, unless a
// test handles it first.
type wire struct {
	*httptest.Server

	mu    sync.Mutex // guards the fields below
	seen  []string
	first func(w http.ResponseWriter, r *http.Request) (done bool)
}

func newWire(t *testing.T, to string) *wire {
	t.Helper()
	w := &wire{}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: to})
	proxy.ErrorLog = log.New(io.Discard, "", 0) // tests make the partner unavailable
	w.Server = httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the company has disconnected
		}
		w.mu.Lock()
		w.seen = append(w.seen, string(body))
		first := w.first
		w.mu.Unlock()
		if first == nil || !first(out, r) {
			r.Body = io.NopCloser(strings.NewReader(string(body)))
			proxy.ServeHTTP(out, r)
		}
	}))
	t.Cleanup(w.Close)
	return w
}

// do sets a function that is called before an event is forwarded. nil removes it.
func (w *wire) do(first func(w http.ResponseWriter, r *http.Request) (done bool)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.first = first
}

// events returns the events sent so far.
func (w *wire) events() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.seen...)
}
