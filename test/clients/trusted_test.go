package clients

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth/extauth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/fakeissuer"
	"github.com/mcp-authd/mcp-authd/internal/testkit/npmtest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/program"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
	"github.com/mcp-authd/mcp-authd/mcpclient"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// trusting is a demo with trusted issuers.
type trusting struct {
	*demotest.Demo
	data string
}

func (d *trusting) trust(t *testing.T, id string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program.Authd(t),
		append([]string{"trust", "add", id, "--data", d.data}, args...)...)
	cmd.Env = append(os.Environ(), "MCP_AUTHD_ISSUER="+d.Issuer)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("trust add: %v %s", err, out)
	}
}

// login runs the command login with additional environment variables.
func (d *trusting) login(t *testing.T, env []string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program.Authd(t), append([]string{"login", d.MCPURL}, args...)...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// offered waits until the metadata list a grant type or a profile. Running servers see a new
// trusted issuer within seconds.
func (d *trusting) offered(t *testing.T, name string) {
	t.Helper()
	wait.Success(t, "the metadata offer "+name, func() error {
		body, err := metadata(d.Issuer)
		if err == nil && !strings.Contains(body, name) {
			err = fmt.Errorf("got %s", body)
		}
		return err
	})
}

func metadata(issuer string) (string, error) {
	resp, err := http.Get(issuer + "/.well-known/oauth-authorization-server")
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

func keyFile(t *testing.T, i *fakeissuer.Issuer) string {
	t.Helper()
	return writeFile(t, "keys.json", i.JWKS())
}

func writeFile(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// job plays GitHub's token endpoint for jobs, and returns the environment of such a job.
func job(t *testing.T, issuer *fakeissuer.Issuer, ref string) []string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer of-this-run" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		token := issuer.Sign("JWT", issuer.GitHub(r.URL.Query().Get("audience"), "acme/notes", ref))
		fmt.Fprintf(w, `{"value":%q}`, token)
	}))
	t.Cleanup(s.Close)
	return []string{"ACTIONS_ID_TOKEN_REQUEST_URL=" + s.URL + "/?api=2", "ACTIONS_ID_TOKEN_REQUEST_TOKEN=of-this-run"}
}

const atCompany = "known-at-the-company"

// TestTrusted tests programs with the identity from their platform, and users with the identity
// from their company, each with its client.
func TestTrusted(t *testing.T) {
	d := &trusting{data: t.TempDir()}
	d.Demo = demotest.Start(t, demotest.Options{Args: []string{"--data", d.data}})
	github := fakeissuer.New(t, "https://token.actions.githubusercontent.com", "github", time.Now)
	cluster := fakeissuer.New(t, "https://kubernetes.default.svc", "cluster", time.Now)
	again := fakeissuer.New(t, "https://again.example", "cluster", time.Now)
	desk := addClient(t, d.Demo, d.data, "--name", "Desk", "--grant", "jwt-bearer")
	company := fakeissuer.Serve(t, map[string]fakeissuer.App{"desk": {Secret: atCompany, Client: desk.ID}})
	d.trust(t, "ci", "--preset", "github-actions", "--set", "repository=acme/notes", "--set", "ref=refs/heads/main",
		"--jwks", keyFile(t, github), "--scope", "mcp", "--scope", "notes:write")
	d.trust(t, "pods", "--preset", "kubernetes", "--issuer", cluster.URL, "--jwks", keyFile(t, cluster),
		"--set", "namespace=prod", "--set", "service_account=bot")
	d.trust(t, "pods-again", "--preset", "kubernetes", "--issuer", again.URL, "--jwks", keyFile(t, again),
		"--set", "namespace=prod", "--set", "service_account=bot", "--resubmit")
	d.trust(t, "company", "--kind", "enterprise", "--issuer", company.URL, "--create-people")
	d.offered(t, oauth.ProfileIDJAG)

	wants := func(t *testing.T, out string, err error, step string) {
		t.Helper()
		if (err == nil) != strings.HasPrefix(step, "✓") || !strings.Contains(out, step) {
			t.Errorf("got %v, want %q in\n%s\n%s", err, step, out, d.Log())
		}
	}
	main := job(t, github, "refs/heads/main")
	t.Run("AS-197 CL-29 login --workload in a job of GitHub Actions", func(t *testing.T) {
		t.Parallel()
		out, err := d.login(t, main, "--workload", "--call", "add_note", "--arg", "text=CL-20: it steps up")
		wants(t, out, err, "✓ 12 tools ")
	})
	t.Run("AS-197 CL-30 login --workload --dpop", func(t *testing.T) {
		t.Parallel()
		out, err := d.login(t, main, "--workload=github-actions", "--dpop")
		wants(t, out, err, "✓ 6 tools ")
	})
	t.Run("AS-203 login --workload in a job of another branch", func(t *testing.T) {
		t.Parallel()
		out, err := d.login(t, job(t, github, "refs/heads/dev"), "--workload")
		wants(t, out, err, "✗ token: invalid_grant")
	})
	t.Run("AS-188 login --workload with the file of a pod, which is good once", func(t *testing.T) {
		t.Parallel()
		file := writeFile(t, "token", cluster.Sign("", cluster.Kubernetes(d.Issuer, "prod", "bot")))
		out, err := d.login(t, nil, "--workload=file:"+file)
		wants(t, out, err, "✓ 6 tools ")
		out, err = d.login(t, nil, "--workload=file:"+file)
		wants(t, out, err, "✗ token: invalid_grant")
	})
	t.Run("AS-188 login --workload with the file of a pod that may use it again", func(t *testing.T) {
		t.Parallel()
		file := writeFile(t, "token", again.Sign("", again.Kubernetes(d.Issuer, "prod", "bot")))
		for range 2 {
			out, err := d.login(t, nil, "--workload=file:"+file)
			wants(t, out, err, "✓ 6 tools ")
		}
	})
	for name, bound := range map[string]*mcpclient.DPoP{
		"AS-197 mcpclient in a pod": nil, "AS-197 CL-30 mcpclient in a pod, with DPoP": {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, err := mcpclient.Workload(t.Context(), mcpclient.Config{
				Server: d.MCPURL, DPoP: bound, Scopes: []string{"mcp"}, StepUp: []string{"notes:write"},
				Token: mcpclient.PlatformTokenFunc(func(_ context.Context, audience string) (string, error) {
					return cluster.Sign("", cluster.Kubernetes(audience, "prod", "bot")), nil
				}),
			})
			if err != nil {
				t.Fatalf("%v\n%s", err, d.Log())
			}
			callTool(t, d.Demo, &mcp.StreamableClientTransport{HTTPClient: client.HTTPClient()}, "add_note",
				map[string]any{"text": "CL-20: it steps up"})
			if got := strings.Join(client.Scopes(), " "); got != "mcp notes:write" {
				t.Errorf("CL-20: got %q", got)
			}
		})
	}
	t.Run("AS-179 go-sdk extauth.EnterpriseHandler", func(t *testing.T) {
		t.Parallel()
		handler, err := extauth.NewEnterpriseHandler(&extauth.EnterpriseHandlerConfig{
			IdPIssuerURL: company.URL, MCPAuthServerURL: d.Issuer, MCPResourceURI: d.MCPURL,
			IdPCredentials: credentials("desk", atCompany), MCPCredentials: credentials(desk.ID, desk.Secret),
			MCPScopes: []string{"mcp"},
			IDTokenFetcher: func(context.Context) (*oauth2.Token, error) {
				return new(oauth2.Token).WithExtra(map[string]any{"id_token": company.IDToken("desk", "ada")}), nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		callTool(t, d.Demo, &mcp.StreamableClientTransport{OAuthHandler: handler}, "whoami", nil)
	})
	t.Run("AS-179 TypeScript SDK v2 CrossAppAccessProvider", func(t *testing.T) {
		t.Parallel()
		told, err := json.Marshal(map[string]string{
			"provider": company.URL, "app": "desk", "appSecret": atCompany, "idToken": company.IDToken("desk", "bob"),
			"clientId": desk.ID, "clientSecret": desk.Secret, "issuer": d.Issuer, "url": d.MCPURL,
		})
		if err != nil {
			t.Fatal(err)
		}
		out, err := npmtest.Command(t, "node", "clients/company.mjs", string(told)).CombinedOutput()
		if err != nil || !strings.Contains(string(out), `"structuredContent"`) {
			t.Errorf("%v\n%s\n%s", err, out, d.Log())
		}
	})
}

func credentials(id, secret string) *oauthex.ClientCredentials {
	return &oauthex.ClientCredentials{
		ClientID: id, ClientSecretAuth: &oauthex.ClientSecretAuth{ClientSecret: secret},
	}
}
