package clients

import (
	"crypto"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"github.com/modelcontextprotocol/go-sdk/auth/extauth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/npmtest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/program"
	"github.com/mcp-authd/mcp-authd/mcpclient"
)

// machine is a client that the operator has created.
type machine struct {
	ID     string `json:"id"`
	Secret string `json:"secret"`
}

func addMachine(t *testing.T, d *demotest.Demo, data string, more ...string) machine {
	t.Helper()
	return addClient(t, d, data, append([]string{
		"--name", "Robot", "--grant", "client_credentials", "--resource", d.MCPURL, "--scope", "mcp", "--scope",
		"notes:write",
	}, more...)...)
}

func addClient(t *testing.T, d *demotest.Demo, data string, more ...string) (m machine) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program.Authd(t),
		append([]string{"client", "add", "--json", "--data", data}, more...)...)
	cmd.Env, cmd.Stderr = append(os.Environ(), "MCP_AUTHD_ISSUER="+d.Issuer), io.Discard
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &m)
	}
	if err != nil || m.ID == "" {
		t.Fatalf("client add: %v %s", err, out)
	}
	return m
}

// callTool calls a tool with the Go SDK over a transport that signs in.
func callTool(
	t *testing.T, d *demotest.Demo, transport *mcp.StreamableClientTransport, tool string, args map[string]any,
) {
	t.Helper()
	transport.Endpoint = d.MCPURL
	session, err := mcp.NewClient(&mcp.Implementation{Name: "machine", Version: "1"}, nil).Connect(t.Context(),
		transport, nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, d.Log())
	}
	defer session.Close()
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil || result.IsError {
		t.Fatalf("%+v, %v", result, err)
	}
}

// TestMachines tests clients that sign in without a user, each with its SDK.
func TestMachines(t *testing.T) {
	data := t.TempDir()
	d := demotest.Start(t, demotest.Options{Args: []string{"--data", data}})
	private, public := newKey(t, jose.ES256)
	key := private.Key.(crypto.Signer)
	set, err := json.Marshal(public)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "keys.json")
	if err := os.WriteFile(file, set, 0o600); err != nil {
		t.Fatal(err)
	}
	byKey := addMachine(t, d, data, "--auth-method", "private_key_jwt", "--jwks", file)
	bySecret := addMachine(t, d, data)

	for name, c := range map[string]*mcpclient.Credentials{
		"AS-171 mcpclient with a secret":        {ID: bySecret.ID, Secret: bySecret.Secret},
		"AS-171 AS-123 mcpclient with a key":    {ID: byKey.ID, Key: key, KeyID: private.KeyID},
		"AS-171 mcpclient with a key and no id": {ID: byKey.ID, Key: key},
	} {
		t.Run(name, func(t *testing.T) {
			client, err := mcpclient.Workload(t.Context(), mcpclient.Config{
				Server: d.MCPURL, Client: c, AuthorizationServer: d.Issuer, StepUp: []string{"notes:write"},
				Scopes: []string{"mcp"},
			})
			if err != nil {
				t.Fatal(err)
			}
			callTool(t, d, &mcp.StreamableClientTransport{HTTPClient: client.HTTPClient()}, "add_note",
				map[string]any{"text": "CL-20: it steps up"})
			if got := strings.Join(client.Scopes(), " "); got != "mcp notes:write" {
				t.Errorf("CL-20: got %q", got)
			}
		})
	}
	t.Run("AS-171 go-sdk extauth.ClientCredentialsHandler", func(t *testing.T) {
		handler, err := extauth.NewClientCredentialsHandler(&extauth.ClientCredentialsHandlerConfig{
			Credentials: &oauthex.ClientCredentials{
				ClientID: bySecret.ID, ClientSecretAuth: &oauthex.ClientSecretAuth{ClientSecret: bySecret.Secret},
			}})
		if err != nil {
			t.Fatal(err)
		}
		callTool(t, d, &mcp.StreamableClientTransport{OAuthHandler: handler}, "whoami", nil)
	})
	t.Run("AS-171 AS-123 TypeScript SDK v2 PrivateKeyJwtProvider", func(t *testing.T) {
		told, err := json.Marshal(map[string]any{
			"clientId": byKey.ID, "key": private, "issuer": d.Issuer, "url": d.MCPURL,
		})
		if err != nil {
			t.Fatal(err)
		}
		out, err := npmtest.Command(t, "node", "clients/machine.mjs", string(told)).CombinedOutput()
		if err != nil || !strings.Contains(string(out), `"structuredContent"`) {
			t.Errorf("%v\n%s", err, out)
		}
	})
	t.Run("CL-29 a wrong secret is reported by its step", func(t *testing.T) {
		_, err := mcpclient.Workload(t.Context(), mcpclient.Config{
			Server: d.MCPURL, AuthorizationServer: d.Issuer,
			Client: &mcpclient.Credentials{ID: bySecret.ID, Secret: "wrong"},
		})
		if err == nil || !strings.Contains(err.Error(), "token: invalid_client") {
			t.Errorf("got %v", err)
		}
	})
}
