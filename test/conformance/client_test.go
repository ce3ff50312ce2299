package conformance

import (
	"bufio"
	"context"
	"crypto"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-authd/mcp-authd/internal/testkit/npmtest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/program"
	"github.com/mcp-authd/mcp-authd/mcpclient"
)

// The suite starts this test binary as the client. scenarioOf selects its role.
const (
	binaryOf   = "MCP_AUTHD_TEST_BINARY"
	scenarioOf = "MCP_CONFORMANCE_SCENARIO"
	contextOf  = "MCP_CONFORMANCE_CONTEXT"

	assertionVar = "MCP_AUTHD_TEST_ASSERTION"
	signInTime   = time.Minute
)

// notPlayed maps the authorization scenarios that neither login nor mcpclient can pass to the
// reasons.
var notPlayed = map[string]string{
	"auth/basic-cimd":                       "login has no client metadata document",
	"auth/scope-step-up":                    "it admits initialize without a token, which login reports",
	"auth/scope-retry-limit":                "it admits initialize without a token, which login reports",
	"auth/authorization-server-migration":   "login forgets everything when it ends",
	"auth/enterprise-managed-authorization": "mcpclient is for programs, not for people of a company",
}

var outcomeLine = regexp.MustCompile(`(?m)^([✓✗]) (auth/\S+): `)

// TestClient runs the suite's authorization scenarios for clients, with login and mcpclient at the
// suite's servers.
func TestClient(t *testing.T) {
	t.Parallel()
	cmd := npmtest.Command(t, "conformance", "client", "--command", os.Args[0], "--requirements", "2026-07-28",
		"-o", t.TempDir())
	cmd.Env = append(cmd.Env, binaryOf+"="+program.Authd(t))
	out, err := cmd.CombinedOutput() // never 0, because other scenarios do not concern authorization
	outcomes := outcomeLine.FindAllStringSubmatch(string(out), -1)
	if len(outcomes) < 20 {
		t.Fatalf("got %d scenarios: %v\n%s", len(outcomes), err, out)
	}
	for _, m := range outcomes {
		t.Run("CL-02 CL-03 CL-05 CL-18 CL-24 CL-28 CL-29 CL-30 "+m[2], func(t *testing.T) {
			switch why := notPlayed[m[2]]; {
			case why == "" && m[1] != "✓":
				t.Errorf("it failed:\n%s", out)
			case why != "" && m[1] == "✓":
				t.Errorf("it passes now, although %s: change docs/clients.md", why)
			}
		})
	}
}

// playClient is the client that the suite starts with the URL of an MCP server. It returns an exit
// code.
func playClient(server string) int {
	var told struct {
		ID         string `json:"client_id"`
		Secret     string `json:"client_secret"`
		PrivateKey string `json:"private_key_pem"`
		Assertion  string `json:"valid_jwt"`
	}
	if raw := os.Getenv(contextOf); raw != "" {
		if err := json.Unmarshal([]byte(raw), &told); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 2
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), signInTime)
	defer cancel()
	var err error
	switch scenario := os.Getenv(scenarioOf); scenario {
	case "auth/client-credentials-basic", "auth/client-credentials-jwt":
		err = asMachine(ctx, server, &mcpclient.Credentials{ID: told.ID, Secret: told.Secret}, told.PrivateKey)
	case "auth/wif-jwt-bearer":
		os.Setenv(assertionVar, told.Assertion)
		err = asPerson(ctx, "", "--workload=env:"+assertionVar, server)
	case "auth/dpop", "auth/dpop-nonce":
		err = asPerson(ctx, "", "--dpop", server)
	case "auth/pre-registration":
		err = asPerson(ctx, told.Secret, "--client-id", told.ID, "--client-secret-stdin", server)
	default:
		if strings.HasPrefix(scenario, "auth/") {
			err = asPerson(ctx, "", server)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// asPerson runs login and opens the authorization URL that it prints.
func asPerson(ctx context.Context, stdin string, args ...string) error {
	cmd := exec.CommandContext(ctx, os.Getenv(binaryOf), append([]string{"login", "--no-browser"}, args...)...)
	cmd.Stdin, cmd.Stderr = strings.NewReader(stdin+"\n"), os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		fmt.Println(lines.Text())
		if link := authorizeURL.FindString(lines.Text()); link != "" {
			go func() {
				if resp, err := http.Get(link); err == nil { // the suite approves without a page
					resp.Body.Close()
				}
			}()
		}
	}
	return cmd.Wait()
}

// asMachine lists the tools with mcpclient. The suite does not name the authorization server of its
// client, as an operator would, so asMachine uses the one in the MCP server's metadata.
func asMachine(ctx context.Context, server string, c *mcpclient.Credentials, key string) error {
	at, err := url.Parse(server)
	if err != nil {
		return err
	}
	resp, err := http.Get("http://" + at.Host + "/.well-known/oauth-protected-resource" + at.Path)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var resource struct {
		Servers []string `json:"authorization_servers"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&resource); err != nil || len(resource.Servers) == 0 {
		return fmt.Errorf("no authorization server: %w", err)
	}
	if key != "" {
		if c.Key, err = parseKey(key); err != nil {
			return err
		}
	}
	client, err := mcpclient.Workload(ctx, mcpclient.Config{
		Server: server, Client: c, AuthorizationServer: resource.Servers[0],
	})
	if err != nil {
		return err
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "machine", Version: "1"}, nil).Connect(ctx,
		&mcp.StreamableClientTransport{Endpoint: server, HTTPClient: client.HTTPClient()}, nil)
	if err != nil {
		return err
	}
	defer session.Close()
	_, err = session.ListTools(ctx, nil)
	return err
}

func parseKey(text string) (crypto.Signer, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, errors.New("the key is no PEM")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, errors.New("the key does not sign")
	}
	return signer, nil
}
