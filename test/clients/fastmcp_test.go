package clients

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/testkit/nettest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/npmtest"
	"github.com/mcp-authd/mcp-authd/internal/testkit/program"
	"github.com/mcp-authd/mcp-authd/internal/testkit/wait"
)

// fastMCP is our server with MCP servers in FastMCP for TypeScript: the recipe, which verifies
// tokens itself, the same behind the gateway, and two that omit a part of the recipe.
type fastMCP struct {
	*foreign
	sessions string // the recipe, with sessions
	plain    string // uses FastMCP's own verifier, which is not configured with an audience
}

func newFastMCP(t *testing.T) *fastMCP {
	t.Helper()
	var at []string
	for range 4 {
		at = append(at, nettest.For(t))
	}
	f := &fastMCP{
		foreign:  &foreign{mcpURL: "http://" + at[0] + "/mcp", inner: "http://" + at[3] + "/inner"},
		sessions: "http://" + at[1] + "/mcp",
		plain:    "http://" + at[2] + "/mcp",
	}
	f.start(t)
	f.run(t, "resource", "add", f.sessions, "--scope", "mcp=use it", "--scope", "notes:write=add notes")
	wait.Until(t, "the server knows of the MCP server with sessions", func() bool {
		out, err := metadata(f.Issuer)
		return err == nil && strings.Contains(out, f.sessions)
	})
	serve(t, at, "fastmcp-server.ts", f.Issuer, f.mcpURL, f.sessions, f.plain, f.inner)
	return f
}

// metadataOf returns the URL of a resource's metadata (RFC 9728 §3.1).
func metadataOf(resource string) string {
	return strings.TrimSuffix(resource, "/mcp") + "/.well-known/oauth-protected-resource/mcp"
}

const (
	listTools  = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",` +
		`"capabilities":{},"clientInfo":{"name":"e2e","version":"1"}}}`
)

// TestFastMCP: issue 17, 6. It tests FastMCP for TypeScript with the recipe of docs/languages.md:
// its checks of our tokens, the missing checks, and that the gateway in front of it performs them.
func TestFastMCP(t *testing.T) {
	npmtest.Dir(t) // skips if the packages are missing
	f := newFastMCP(t)
	t.Run("the snippet is TypeScript", func(t *testing.T) { compiles(t, "verify.ts", "fastmcp.ts") })
	t.Run("RS-28 AS-114 a client signs in, and is asked for more scope at the gateway alone", f.clients)
	reading := f.tokens(t, f.mcpURL, "mcp")["access_token"]
	t.Run("RS-01 RS-03 RS-04 its metadata is at the path and at the root", f.metadata)
	t.Run("RS-14 RS-16 RS-37 RS-42 it refuses what is no token for it", func(t *testing.T) { f.refuses(t, reading) })
	t.Run("RS-59 RS-60 check finds what the page says alone: a foreign Origin is refused with 403", f.checked)
	t.Run("RS-28 without the scope of the server, it asks for it", func(t *testing.T) {
		resp, body := postTo(t, f.mcpURL, f.tokens(t, f.mcpURL, "notes:write")["access_token"], toolOf("whoami"))
		want := `Bearer error="insufficient_scope", scope="mcp", resource_metadata="` + metadataOf(f.mcpURL) + `"`
		if got := resp.Header.Get("WWW-Authenticate"); resp.StatusCode != http.StatusForbidden || got != want {
			t.Errorf("got %s %s %s, want %s", resp.Status, got, body, want)
		}
	})
	t.Run("RS-56 without the scope of a tool, there is no such tool", func(t *testing.T) { f.hides(t, reading) })
	t.Run("RS-38 in a session, the tools are those of its first token", func(t *testing.T) {
		first, other := f.tokens(t, f.sessions, "mcp notes:write")["access_token"], f.tokens(t, f.sessions, "mcp")
		resp, body := postTo(t, f.sessions, first, initialize)
		session := resp.Header.Get("Mcp-Session-Id")
		if session == "" {
			t.Fatalf("got %s %s", resp.Status, body)
		}
		if resp, body := postIn(t, session, f.sessions, other["access_token"], toolOf("add_note")); resp.StatusCode !=
			http.StatusOK || !strings.Contains(body, "noted") {
			t.Errorf("got %s %s; does the page still say that sessions do this?", resp.Status, body)
		}
	})
	t.Run("RS-94 messages of /sse need no token, and the recipe has none", func(t *testing.T) { f.sse(t, reading) })
	t.Run("RS-39 RS-42 its own verifier takes what is not for it", func(t *testing.T) { f.verifies(t, reading) })
	t.Run("RS-44 what has been revoked goes on to its end", func(t *testing.T) {
		f.run(t, "grant", "revoke", grantOf(t, reading))
		if resp, body := postTo(t, f.mcpURL, reading, toolOf("whoami")); resp.StatusCode != http.StatusOK {
			t.Errorf("got %s %s; does the page still say that it lacks this?", resp.Status, body)
		}
	})
}

func (f *fastMCP) checked(t *testing.T) {
	out, err := exec.Command(program.Authd(t), "check", f.mcpURL, "--json").Output()
	var found []struct{ Level, What string }
	if json.Unmarshal(out, &found) != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, one := range found {
		if one.Level == "fail" && !strings.Contains(one.What, " without a token is 401") {
			t.Errorf("check: %s", one.What)
		}
	}
}

func (f *fastMCP) clients(t *testing.T) {
	for url, signIns := range map[string]int{f.mcpURL: 1, f.MCPURL: 2} {
		p := newPerson(t, f.Demo)
		out, err := tryRun(t, p, npmtest.Command(t, "node", "clients/sdk-v2.mjs", url, "", "whoami", "add_note"))
		if !strings.Contains(out, `\"subject\":\"usr_`) || p.signIns() != signIns {
			t.Errorf("%s: got %d sign-ins and\n%s", url, p.signIns(), p.output())
		}
		if url == f.MCPURL {
			if err != nil || !strings.Contains(out, "notes:write") {
				t.Errorf("behind the gateway: %v", err)
			}
		} else if err == nil || !strings.Contains(p.output(), "Unknown tool: add_note") {
			t.Errorf("by itself: got %v and\n%s; does the page still say that it lacks this?", err, p.output())
		}
	}
	if resp, body := postTo(t, f.inner, "", toolOf("whoami")); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("past the gateway: got %s %s", resp.Status, body)
	}
}

func (f *fastMCP) metadata(t *testing.T) {
	want := `{"resource":"` + f.mcpURL + `","authorization_servers":["` + f.Issuer + `"],"scopes_supported":["mcp"]}`
	for _, url := range []string{metadataOf(f.mcpURL), strings.TrimSuffix(metadataOf(f.mcpURL), "/mcp")} {
		resp, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || string(got) != want {
			t.Errorf("%s: got %s %s, %v, want %s", url, resp.Status, got, err, want)
		}
	}
}

// refuses checks requests without a token, and with tokens that differ from a good one in one
// respect.
func (f *fastMCP) refuses(t *testing.T, good string) {
	if resp, body := postTo(t, f.mcpURL, good, toolOf("whoami")); resp.StatusCode != http.StatusOK {
		t.Fatalf("a good one: got %s %s", resp.Status, body)
	}
	want := `Bearer resource_metadata="` + metadataOf(f.mcpURL) +
		`", error="invalid_token", error_description="Unauthorized: Authentication failed"`
	for _, w := range append(spoilt(t, f.signer(t), good, "at+jwt", "mcp-identity+jwt"),
		wrong{"for the gateway", "", f.tokens(t, f.MCPURL, "mcp")["access_token"]},
		wrong{"that is an ID token", "", f.tokens(t, f.mcpURL, "openid mcp")["id_token"]},
		wrong{"of nothing", "", "nothing"}, wrong{"that is not there", "", ""}) {
		resp, body := postTo(t, f.mcpURL, w.token, toolOf("whoami"))
		if got := resp.Header.Get("WWW-Authenticate"); resp.StatusCode != http.StatusUnauthorized || got != want {
			t.Errorf("one %s: got %s %s %s, want %s", w.name, resp.Status, got, body, want)
		}
	}
}

func (f *fastMCP) hides(t *testing.T, reading string) {
	writing := f.tokens(t, f.mcpURL, "mcp notes:write")["access_token"]
	if _, body := postTo(t, f.mcpURL, writing, listTools); !strings.Contains(body, "add_note") {
		t.Errorf("with the scope: got %s", body)
	}
	if _, body := postTo(t, f.mcpURL, writing, toolOf("add_note")); !strings.Contains(body, "noted") {
		t.Errorf("with the scope: got %s", body)
	}
	if _, body := postTo(t, f.mcpURL, reading, listTools); strings.Contains(body, "add_note") ||
		!strings.Contains(body, "whoami") {
		t.Errorf("without the scope: got %s", body)
	}
	resp, body := postTo(t, f.mcpURL, reading, toolOf("add_note"))
	if resp.StatusCode != http.StatusOK || resp.Header.Get("WWW-Authenticate") != "" ||
		!strings.Contains(body, `"code":-32601`) || !strings.Contains(body, "Unknown tool: add_note") {
		t.Errorf("without the scope: got %s %s; is the page still true?", resp.Status, body)
	}
	resp, body = postTo(t, f.MCPURL, f.tokens(t, f.MCPURL, "mcp")["access_token"], toolOf("add_note"))
	challenge := resp.Header.Get("WWW-Authenticate")
	if resp.StatusCode != http.StatusForbidden || !strings.Contains(challenge, `error="insufficient_scope"`) ||
		!strings.Contains(challenge, "notes:write") {
		t.Errorf("behind the gateway: got %s %q %s", resp.Status, challenge, body)
	}
}

// verifies checks FastMCP's own verifier with such tokens. The tool reports the result that the
// verifier would have with an audience.
func (f *fastMCP) verifies(t *testing.T, good string) {
	for _, w := range spoilt(t, f.signer(t), good, "at+jwt", "mcp-identity+jwt") {
		status, says := http.StatusUnauthorized, ""
		switch w.because {
		case "audience":
			status, says = http.StatusOK, `\"withAudience\":false`
		case "typ", "bound", "claim":
			status, says = http.StatusOK, `\"withAudience\":true`
		}
		resp, body := postTo(t, f.plain, w.token, toolOf("whoami"))
		if resp.StatusCode != status || !strings.Contains(body, says) {
			t.Errorf("one %s: got %s %s, want %d %s; does the page still say that it lacks this?", w.name,
				resp.Status, body, status, says)
		}
	}
}

// sse opens the stream of the 2024-11-05 transport, which FastMCP also provides.
func (f *fastMCP) sse(t *testing.T, token string) {
	open := func(mcpURL string) *http.Response {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.TrimSuffix(mcpURL, "/mcp")+"/sse",
			nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	refused := open(f.mcpURL)
	refused.Body.Close()
	if refused.StatusCode != http.StatusUnauthorized {
		t.Errorf("the recipe: got %s", refused.Status)
	}
	stream := open(f.plain)
	defer stream.Body.Close()
	stop := time.AfterFunc(time.Minute, func() { stream.Body.Close() })
	defer stop.Stop()
	var seen strings.Builder
	for lines := bufio.NewScanner(stream.Body); lines.Scan(); {
		seen.WriteString(lines.Text() + "\n")
		if path, ok := strings.CutPrefix(lines.Text(), "data: /messages"); ok {
			resp, body := postTo(t, strings.TrimSuffix(f.plain, "/mcp")+"/messages"+path, "", initialize)
			if resp.StatusCode != http.StatusAccepted {
				t.Fatalf("got %s %s; does the page still say that it lacks this?", resp.Status, body)
			}
		}
		if strings.Contains(lines.Text(), "serverInfo") {
			return
		}
	}
	t.Errorf("got %s %s; does the page still say that it lacks this?", stream.Status, seen.String())
}
