package mcptest

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"

	"github.com/mcp-authd/mcp-authd/mcpresource"
)

// Server is an MCP server on loopback, behind a guard that trusts Issuer.
type Server struct {
	URL    string // of the MCP endpoint, which is the resource of the tokens
	Guard  *mcpresource.Guard
	Issuer *Issuer
}

// Serve runs an MCP server until the test ends. The guard has the configuration c, with a new issuer
// and with the origin of the test server in Resource and Aliases. Resource may be empty. handler
// returns the handler for every path of the server, such as g.Handler(yourMCPHandler). Without a
// Logger, the test's output has a line for each refused request.
func Serve(t testing.TB, c mcpresource.Config, handler func(g *mcpresource.Guard) http.Handler) *Server {
	t.Helper()
	s := httptest.NewUnstartedServer(nil)
	origin := "http://" + s.Listener.Addr().String()
	out := &output{to: t.Output()}
	t.Cleanup(func() {
		s.CloseClientConnections() // Close waits for open streams
		s.Close()
		out.end()
	})
	if c.Logger == nil {
		c.Logger = slog.New(slog.NewTextHandler(out, nil))
	}
	if err := move(&c, origin); err != nil {
		t.Fatal(err)
	}
	srv := &Server{URL: c.Resource, Issuer: NewIssuer(t)}
	srv.Issuer.Configure(&c)
	var err error
	if srv.Guard, err = mcpresource.New(c); err != nil {
		t.Fatal(err)
	}
	s.Config.Handler = handler(srv.Guard)
	s.Start()
	return srv
}

// move moves the resource and its aliases to another origin.
func move(c *mcpresource.Config, origin string) error {
	if c.Resource == "" {
		c.Resource = "/mcp"
	}
	aliases := make([]string, len(c.Aliases))
	for i, at := range append([]string{c.Resource}, c.Aliases...) {
		u, err := url.Parse(at)
		if err != nil {
			return fmt.Errorf("mcptest: %q must be a URL: %w", at, err)
		}
		if i == 0 {
			c.Resource = origin + u.EscapedPath()
			continue
		}
		aliases[i-1] = origin + u.EscapedPath()
	}
	c.Aliases = aliases
	return nil
}

// Client returns a client whose requests carry a new token of a user for this server.
func (s *Server) Client(person string, scopes ...string) *http.Client {
	return Client(s.Issuer.Token(s.URL, person, scopes...))
}

// Client returns a client whose requests carry an access token.
func Client(token string) *http.Client { return &http.Client{Transport: bearer(token)} }

// bearer is an access token that is sent with each request.
type bearer string

// RoundTrip implements http.RoundTripper.
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// output is the output of a test, which must not be written to after the test.
type output struct {
	mu sync.Mutex // guards to
	to io.Writer
}

// Write implements io.Writer.
func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.to.Write(b)
}

func (o *output) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.to = io.Discard
}
