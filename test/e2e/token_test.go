package e2e

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/testkit/demotest"
)

// TestToken: AU-02. The command token signs the user in once, prints tokens that the MCP server
// accepts, and signs out. It uses a sign-in that login kept.
func TestToken(t *testing.T) {
	d := demotest.Start(t, demotest.Options{})
	o := &operator{T: t, demo: d, person: d.Person(), home: t.TempDir(), env: []string{"MCP_AUTHD_STORE=file"}}
	status := func(token string) int {
		t.Helper()
		r, err := http.NewRequest(http.MethodPost, d.MCPURL, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	run := func(want int, args ...string) string {
		t.Helper()
		out, asked, err := o.run(args...)
		if err != nil || asked != want {
			t.Fatalf("AU-02: %v: asked %d times, want %d; %v\n%s", args, asked, want, err, out)
		}
		return out
	}
	if out, _, err := o.run("token", d.MCPURL); err == nil || !strings.Contains(out, "sign in at a terminal") {
		t.Errorf("AU-02: a script without a terminal: %s, %v", out, err)
	}
	run(1, "token", d.MCPURL, "--no-browser")
	token := strings.TrimSpace(run(0, "token", d.MCPURL))
	if got := status(token); got == http.StatusUnauthorized || strings.ContainsAny(token, " \n") {
		t.Errorf("AU-02: %q is answered with %d", token, got)
	}
	var printed struct {
		Token     string `json:"access_token"`
		TokenType string `json:"token_type"`
		ExpiresAt string `json:"expires_at"`
		Scope     string `json:"scope"`
	}
	if err := json.Unmarshal([]byte(run(0, "token", d.MCPURL, "--json")), &printed); err != nil ||
		printed.Token != token || printed.TokenType != "Bearer" || printed.ExpiresAt == "" || printed.Scope == "" {
		t.Errorf("AU-02: got %+v, %v", printed, err)
	}
	o.change(func(k map[string]any) { k["expires_at"] = "2020-01-01T00:00:00Z" })
	again := strings.TrimSpace(run(0, "token", d.MCPURL))
	if again == token || status(again) == http.StatusUnauthorized {
		t.Error("AU-02: the token was not refreshed")
	}
	run(1, "token", d.MCPURL, "--no-browser", "--account", "other")
	run(0, "token", "logout", d.MCPURL, "--account", "other")
	out := run(0, "token", "logout", d.MCPURL, "--json")
	if !strings.Contains(out, `"signed_out": true`) || o.kept() != "" {
		t.Errorf("AU-02: logout: %s, %q stays", out, o.kept())
	}
	if got := status(token); got != http.StatusUnauthorized {
		t.Errorf("AU-02: after the sign-out, the token is answered with %d", got)
	}
	demotest.LoginKeep(t, o.person, d.MCPURL, append(o.env, "XDG_CONFIG_HOME="+o.home)...)
	if token := strings.TrimSpace(run(0, "token", d.MCPURL)); status(token) == http.StatusUnauthorized {
		t.Error("AU-02: the sign-in of login is not used")
	}
}
