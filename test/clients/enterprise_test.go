package clients

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/nettest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/npmtest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/program"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// TestInspectorEnterprise: AS-179 AS-196. It tests the Inspector with its setting
// enterpriseManaged. A user signs in once at the company, which is one of our servers. Another
// server then accepts the user without asking.
func TestInspectorEnterprise(t *testing.T) {
	npmtest.Dir(t)
	company, data := startDemo(t)
	d := &trusting{}
	d.Demo, d.data = startDemo(t)
	home := t.TempDir()
	callback := "http://" + nettest.For(t) + "/oauth/callback"
	here := addClient(t, d.Demo, d.data, "--name", "Inspector", "--grant", "jwt-bearer")
	there := addClient(t, company, data, "--id", "inspector", "--name", "Inspector", "--scope", "openid",
		"--auth-method", "client_secret_basic", "--redirect-uri", callback)
	issue := exec.CommandContext(t.Context(), program.Authd(t), "trust", "issue", "add", d.Issuer, "--data", data,
		"--resource", d.MCPURL, "--scope", "mcp", "--client", "inspector="+here.ID)
	issue.Env = append(os.Environ(), "MCP_AUTHD_ISSUER="+company.Issuer)
	if out, err := issue.CombinedOutput(); err != nil {
		t.Fatalf("trust issue add: %v %s", err, out)
	}
	d.trust(t, "company", "--kind", "enterprise", "--issuer", company.Issuer, "--create-people")
	d.offered(t, oauth.ProfileIDJAG)

	settings := func(name string, content any) string {
		b, err := json.Marshal(content)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(home, name)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	type object = map[string]any
	client := settings("client.json", object{"enterpriseManagedAuth": object{"idp": object{
		"issuer": company.Issuer, "clientId": there.ID, "clientSecret": there.Secret,
	}}})
	servers := settings("servers.json", object{"mcpServers": object{"notes": object{
		"type": "streamable-http", "url": d.MCPURL,
		"oauth": object{"clientId": here.ID, "clientSecret": here.Secret, "enterpriseManaged": true},
	}}})
	whoami := func() *person {
		t.Helper()
		cmd := inspectorCommand(t, home, callback, "whoami", "--config", servers, "--server", "notes")
		cmd.Env = append(cmd.Env, "MCP_CLIENT_CONFIG_PATH="+client)
		p := newPerson(t, company)
		out, err := tryRun(t, p, cmd)
		if err != nil || !strings.Contains(out, "usr_") {
			t.Errorf("got %v and\n%s\n%s", err, p.output(), d.Log())
		}
		return p
	}
	for _, signIns := range []int{1, 0} {
		if p := whoami(); p.signIns() != signIns {
			t.Errorf("%d sign-ins at the company, want %d", p.signIns(), signIns)
		}
	}
}

func startDemo(t *testing.T) (d *demotest.Demo, data string) {
	t.Helper()
	data = t.TempDir()
	return demotest.Start(t, demotest.Options{Args: []string{"--data", data}}), data
}
