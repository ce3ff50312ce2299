package clients

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/testkit/npmtest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/program"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

// serve runs MCP servers with Node until the end of the test. The first argument is the program in
// the recipes.
func serve(t *testing.T, addresses []string, args ...string) {
	t.Helper()
	cmd := npmtest.Command(t, "node", append([]string{recipes + "/" + args[0]}, args[1:]...)...)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // being killed is not an error
	})
	for _, address := range addresses {
		wait.Until(t, "the MCP server answers at "+address, func() bool {
			resp, err := http.Get("http://" + address + "/")
			if err == nil {
				resp.Body.Close()
			}
			return err == nil
		})
	}
}

// compiles type-checks recipes against their libraries.
func compiles(t *testing.T, names ...string) {
	t.Helper()
	args := []string{"--noEmit", "--strict", "--noImplicitAny", "false", "--module", "nodenext", "--target", "es2024",
		"--allowImportingTsExtensions", "--skipLibCheck"}
	for _, name := range names {
		args = append(args, recipes+"/"+name)
	}
	if out, err := npmtest.Command(t, "tsc", args...).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// toolOf returns a tool call of a client of 2025-06-18.
func toolOf(name string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + name + `","arguments":{}}}`
}

// grantOf returns the grant of an access token.
func grantOf(t *testing.T, token string) string {
	t.Helper()
	var claims struct{ GID string }
	b, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[1])
	if err == nil {
		err = json.Unmarshal(b, &claims)
	}
	if err != nil || claims.GID == "" {
		t.Fatalf("%v: %s", err, b)
	}
	return claims.GID
}

// TestBearerAuth: issue 17, 6. It tests the TypeScript SDK's requireBearerAuth with the recipe of
// docs/languages.md: its checks of our tokens, the missing checks, and that the gateway in front of
// the same program performs them.
func TestBearerAuth(t *testing.T) {
	npmtest.Dir(t) // skips if the packages are missing
	f := newForeign(t)
	serve(t, []string{f.address}, "server.ts", f.address, f.Issuer)
	t.Run("the snippets are TypeScript", func(t *testing.T) { compiles(t, "verify.ts", "protect.ts") })
	for name, url := range map[string]string{"by itself": f.mcpURL, "behind the gateway": f.MCPURL} {
		t.Run("RS-28 a client signs in to the server "+name, func(t *testing.T) {
			p := newPerson(t, f.Demo)
			out := run(t, p, npmtest.Command(t, "node", "clients/sdk-v2.mjs", url, "", "whoami"))
			if !strings.Contains(out, `"subject":"usr_`) || !strings.Contains(out, `"scopes":["mcp"]`) ||
				p.signIns() != 1 {
				t.Errorf("got %d sign-ins and\n%s", p.signIns(), p.output())
			}
		})
	}
	t.Run("RS-59 check finds nothing to mend", func(t *testing.T) {
		if out, err := exec.Command(program.Authd(t), "check", f.mcpURL).CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	own, ours := f.tokens(t, f.mcpURL, "mcp")["access_token"], f.tokens(t, f.MCPURL, "mcp")["access_token"]
	t.Run("RS-33 RS-37 RS-42 by itself it refuses what is no token for it", func(t *testing.T) {
		for _, w := range append(spoilt(t, f.signer(t), own, "at+jwt", "mcp-identity+jwt"),
			wrong{"for the gateway", "", ours}, wrong{"of nothing", "", "nothing"}) {
			resp, body := postTo(t, f.mcpURL, w.token, toolOf("whoami"))
			challenge := resp.Header.Get("WWW-Authenticate")
			if resp.StatusCode != http.StatusUnauthorized || !strings.Contains(challenge, `error="invalid_token"`) ||
				!strings.Contains(challenge, "/.well-known/oauth-protected-resource/mcp") {
				t.Errorf("one %s: got %s %q %s", w.name, resp.Status, challenge, body)
			}
		}
	})
	t.Run("behind the gateway it refuses who comes past the gateway", func(t *testing.T) {
		if resp, body := postTo(t, f.inner, ours, toolOf("whoami")); resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("got %s %s", resp.Status, body)
		}
	})
	t.Run("AS-114 the scopes of a tool are left out, and the gateway asks for them", func(t *testing.T) {
		if resp, body := postTo(t, f.mcpURL, own, toolOf("add_note")); resp.StatusCode != http.StatusOK ||
			!strings.Contains(body, `"scopes":["mcp"]`) {
			t.Errorf("by itself: got %s %s; does the page still say that it lacks this?", resp.Status, body)
		}
		resp, body := postTo(t, f.MCPURL, ours, toolOf("add_note"))
		challenge := resp.Header.Get("WWW-Authenticate")
		if resp.StatusCode != http.StatusForbidden || !strings.Contains(challenge, `error="insufficient_scope"`) ||
			!strings.Contains(challenge, "notes:write") {
			t.Errorf("behind the gateway: got %s %q %s", resp.Status, challenge, body)
		}
		p := newPerson(t, f.Demo)
		out := run(t, p, npmtest.Command(t, "node", "clients/sdk-v2.mjs", f.MCPURL, "", "add_note"))
		if !strings.Contains(out, "notes:write") || p.signIns() != 2 {
			t.Errorf("behind the gateway: got %d sign-ins and\n%s", p.signIns(), p.output())
		}
	})
	t.Run("RS-51 what has been revoked goes on to its end, and ends at the gateway", func(t *testing.T) {
		if resp, body := postTo(t, f.MCPURL, ours, toolOf("whoami")); resp.StatusCode == http.StatusUnauthorized {
			t.Fatalf("before: got %s %s", resp.Status, body)
		}
		for _, token := range []string{own, ours} {
			f.run(t, "grant", "revoke", grantOf(t, token))
		}
		wait.Until(t, "the gateway refuses the token", func() bool {
			resp, _ := postTo(t, f.MCPURL, ours, toolOf("whoami"))
			return resp.StatusCode == http.StatusUnauthorized
		})
		if resp, body := postTo(t, f.mcpURL, own, toolOf("whoami")); resp.StatusCode != http.StatusOK {
			t.Errorf("by itself: got %s %s; does the page still say that it lacks this?", resp.Status, body)
		}
	})
}
