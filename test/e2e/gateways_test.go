package e2e

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/internal/dpop"
	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/nettest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/pgtest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/program"
)

const gatewaysConfig = `issuer: ISSUER
data_dir: DIR
secret_key: kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk
database: {url: "DATABASE"}
clients: [{id: robot, name: Robot, secret: ` + agentSecret + `, grant_types: [client_credentials], resources: ["ISSUER/mcp"]}]
resources: [{uri: "ISSUER/mcp", name: R, upstream: {url: "UPSTREAM"}, scopes: [{name: mcp, description: use it, default: true}], MORE}]
`

// gateways are two replicas on one PostgreSQL, each a gateway to the same MCP server. Clients see
// one server with the issuer's name.
type gateways struct {
	*demotest.Demo
	t        *testing.T
	config   string
	replicas []*replica
	paid     atomic.Int64 // calls of the tool pay that reached the MCP server
}

// newGateways starts gateways with one user. more is the configuration of the MCP server, and top
// the rest of the configuration.
func newGateways(t *testing.T, more, top string) *gateways {
	t.Helper()
	s := mcp.NewServer(&mcp.Implementation{Name: "inner", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "whoami"},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, struct{}, error) {
			return nil, struct{}{}, nil
		})
	g := &gateways{t: t}
	mcp.AddTool(s, &mcp.Tool{Name: "pay"},
		func(context.Context, *mcp.CallToolRequest, map[string]any) (*mcp.CallToolResult, struct{}, error) {
			g.paid.Add(1)
			return nil, struct{}{}, nil
		})
	inner := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s },
		&mcp.StreamableHTTPOptions{Stateless: true}))
	t.Cleanup(inner.Close)
	addresses, dir := []string{nettest.For(t), nettest.For(t)}, t.TempDir()
	g.Demo = &demotest.Demo{Issuer: "http://" + addresses[0], Username: "alice", Password: companyPassword}
	g.config = filepath.Join(dir, "mcp-authd.yaml")
	g.MCPURL = g.Issuer + "/mcp"
	yaml := strings.NewReplacer("ISSUER", g.Issuer, "DIR", dir, "DATABASE", pgtest.Start(t).Database(t),
		"UPSTREAM", inner.URL, "MORE", more).Replace(gatewaysConfig + top)
	if err := os.WriteFile(g.config, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, a := range addresses {
		g.replicas = append(g.replicas, startReplica(t, g.config, a))
	}
	add := exec.Command(program.Authd(t), "user", "add", g.Username, "--password-stdin", "--config", g.config)
	add.Stdin = strings.NewReader(g.Password)
	if out, err := add.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return g
}

// answer is the response of a replica.
type answer struct {
	status int
	header http.Header
	body   string
}

// do sends a request to a replica, as if the issuer's name had resolved to it.
func (g *gateways) do(to *replica, r *http.Request) answer {
	r.Host = r.URL.Host
	r.URL.Host = to.address
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		g.t.Error(err)
		return answer{}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		g.t.Error(err)
	}
	return answer{resp.StatusCode, resp.Header, string(body)}
}

// race sends 32 requests concurrently, to the replicas in turn, and counts the results.
func (g *gateways) race(ask func(to *replica) (said string)) map[string]int {
	begin, said := make(chan struct{}), map[string]int{}
	var mu sync.Mutex // guards said
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			<-begin
			what := ask(g.replicas[i%2])
			mu.Lock()
			defer mu.Unlock()
			said[what]++
		})
	}
	close(begin)
	wg.Wait()
	return said
}

func proof(t *testing.T, s *dpop.Signer, url, token, nonce string) string {
	t.Helper()
	p, err := s.Proof(dpop.Claims{Method: http.MethodPost, URL: url, Token: token, Nonce: nonce, Now: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	return p
}
