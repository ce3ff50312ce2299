package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
	"github.com/mcp-authd/mcp-authd/oauth"
)

const verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk" // RFC 7636 appendix B

func authorizeQuery(t *testing.T, d *demotest.Demo, clientID string) url.Values {
	t.Helper()
	return url.Values{
		"response_type": {"code"}, "client_id": {clientID}, "redirect_uri": {redirect}, "state": {"s"},
		"code_challenge": {oauth.ChallengeS256(verifier)}, "code_challenge_method": {oauth.S256},
		"resource": {d.MCPURL},
	}
}

func post(t *testing.T, target string, form url.Values) (int, map[string]any) {
	t.Helper()
	resp, err := http.PostForm(target, form)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	var out map[string]any
	if len(body) > 0 {
		if err := json.Unmarshal(body, &out); err != nil {
			t.Fatalf("%s answered %s: %s", target, resp.Status, body)
		}
	}
	return resp.StatusCode, out
}

// signIn gets tokens over plain HTTP.
func signIn(t *testing.T, d *demotest.Demo, p *demotest.Person, clientID string) map[string]any {
	t.Helper()
	back, err := p.Visit(d.Issuer + "/authorize?" + authorizeQuery(t, d, clientID).Encode())
	if err != nil {
		t.Fatal(err)
	}
	status, out := post(t, d.Issuer+"/token", url.Values{
		"grant_type": {"authorization_code"}, "client_id": {clientID}, "code": {back.Query().Get("code")},
		"code_verifier": {verifier}, "redirect_uri": {redirect},
	})
	if status != http.StatusOK {
		t.Fatalf("token: %d %v", status, out)
	}
	return out
}

// callWhoami calls a tool over plain HTTP and returns the status.
func callWhoami(t *testing.T, d *demotest.Demo, token any) int {
	t.Helper()
	resp, err := http.DefaultClient.Do(toolRequest(d.MCPURL, "whoami", "Bearer "+token.(string)))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

// toolRequest returns a request that calls a tool of an MCP server.
func toolRequest(url, tool, authorization string) *http.Request {
	return callRequest(url, tool, "{}", authorization)
}

// callRequest returns a request that calls a tool with arguments in JSON.
func callRequest(url, tool, arguments, authorization string) *http.Request {
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + arguments +
		`,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	req, _ := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	for k, v := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"MCP-Protocol-Version": "2026-07-28",
		"Mcp-Method":           "tools/call", "Mcp-Name": tool, "Authorization": authorization,
	} {
		req.Header.Set(k, v)
	}
	return req
}

func TestRevocation(t *testing.T) {
	d := demotest.Start(t, demotest.Options{})
	id := register(t, d)
	tokens := signIn(t, d, d.Person(), id)
	if status := callWhoami(t, d, tokens["access_token"]); status != http.StatusOK {
		t.Fatalf("with a good token: got %d", status)
	}
	if status, out := post(t, d.Issuer+"/revoke",
		url.Values{"token": {tokens["refresh_token"].(string)}, "client_id": {id}}); status != http.StatusOK {
		t.Fatalf("revoke: %d %v", status, out)
	}
	t.Run("RS-44 AS-226 the access token is refused at once", func(t *testing.T) {
		if status := callWhoami(t, d, tokens["access_token"]); status != http.StatusUnauthorized {
			t.Errorf("got %d, want 401", status)
		}
	})
	t.Run("AS-226 the refresh token is dead", func(t *testing.T) {
		status, out := post(t, d.Issuer+"/token",
			url.Values{"grant_type": {"refresh_token"}, "refresh_token": {tokens["refresh_token"].(string)},
				"client_id": {id}})
		if status != 400 || out["error"] != "invalid_grant" {
			t.Errorf("got %d %v", status, out)
		}
	})
}

func TestKillLosesNothing(t *testing.T) {
	o := demotest.Options{Args: []string{"--data", filepath.Join(t.TempDir(), "data")}}
	first := demotest.Start(t, o)
	id := register(t, first)
	tokens := signIn(t, first, first.Person(), id)
	first.Kill()

	o.Args = append(o.Args, "--listen", strings.TrimPrefix(first.Issuer, "http://")) // the same issuer again
	second := demotest.Start(t, o)
	t.Run("user, keys, clients and grants are the same after kill -9", func(t *testing.T) {
		if second.Username != first.Username || second.Password != first.Password {
			t.Errorf("got %s %s", second.Username, second.Password)
		}
		status, out := post(t, second.Issuer+"/token",
			url.Values{"grant_type": {"refresh_token"}, "refresh_token": {tokens["refresh_token"].(string)},
				"client_id": {id}})
		if status != http.StatusOK {
			t.Errorf("refresh: got %d %v", status, out)
		}
	})
}
