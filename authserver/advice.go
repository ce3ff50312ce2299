package authserver

import (
	"net/url"
	"strings"
)

// family is a kind of MCP client that keeps presenting a registration which the server
// does not know any more. Only its own people can clear it, so the page says how.
type family struct {
	name    string
	matches func(clientID string, redirect *url.URL) bool
	steps   string
}

// families are told apart by what they redirect to, before anything is known of them.
// What the page says is advice, never a decision; it names a family as a likelihood.
var families = []family{
	{"Claude Code", idPrefix("https://claude.ai/oauth/claude-code"), "Run /mcp in Claude Code, choose this server and then \"Clear authentication\", and authenticate again."},
	{"Claude", onHosts("claude.ai", "claude.com"), "Open the connectors in the settings of Claude, disconnect this one or remove it, and add it again."},
	{"Claude", byScheme("claude"), "Open the connectors in the settings of Claude, disconnect this one or remove it, and add it again."},
	{"ChatGPT", onHosts("chatgpt.com"), "Open the connectors in the settings of ChatGPT, delete this one, and add it again."},
	{"Cursor", onHosts("www.cursor.com"), "In the MCP settings of Cursor, log out of this server or remove it, and add it again."},
	{"Cursor", byScheme("cursor"), "In the MCP settings of Cursor, log out of this server or remove it, and add it again."},
	{"VS Code", onHosts("vscode.dev", "insiders.vscode.dev"), "Run \"Authentication: Remove Dynamic Authentication Providers\" from the command palette, choose this server, and connect again."},
	{"VS Code", onLoopback("33418", "/"), "Run \"Authentication: Remove Dynamic Authentication Providers\" from the command palette, choose this server, and connect again."},
	{"Warp", byScheme("warp"), "In the MCP settings of Warp, log out of this server or remove it, and add it again."},
	{"the MCP Inspector", onLoopback("6274", ""), "Clear the OAuth state in the Inspector and connect again."},
	{"the MCP Inspector", onLoopback("6276", ""), "Run the Inspector with --relogin."},
	{"OpenCode", onLoopback("19876", ""), "Run: opencode mcp logout, then: opencode mcp auth"},
	{"Codex", onLoopback("", "/callback/"), "Run: codex mcp logout NAME, then: codex mcp login NAME"},
	{"mcp-remote or Gemini CLI", onLoopback("", "/oauth/callback"), "For mcp-remote delete the folder .mcp-auth in your home folder; for Gemini CLI delete the entry of this server in .gemini/mcp-oauth-tokens.json. Then connect again."},
}

// familyOf returns the first family that fits, or none.
func familyOf(clientID, redirectURI string) (family, bool) {
	u, err := url.Parse(redirectURI)
	if err != nil {
		u = &url.URL{}
	}
	for _, f := range families {
		if f.matches(clientID, u) {
			return f, true
		}
	}
	return family{}, false
}

func idPrefix(prefix string) func(string, *url.URL) bool {
	return func(id string, _ *url.URL) bool { return strings.HasPrefix(id, prefix) }
}

func onHosts(hosts ...string) func(string, *url.URL) bool {
	return func(_ string, u *url.URL) bool {
		for _, h := range hosts {
			if u.Scheme == "https" && u.Host == h {
				return true
			}
		}
		return false
	}
}

func byScheme(scheme string) func(string, *url.URL) bool {
	return func(_ string, u *url.URL) bool { return u.Scheme == scheme }
}

// onLoopback matches a port, or any if it is empty, and a path that is or begins as given.
func onLoopback(port, path string) func(string, *url.URL) bool {
	return func(_ string, u *url.URL) bool {
		if u.Scheme != "http" || port != "" && u.Port() != port {
			return false
		}
		return path == "" || u.Path == path || len(path) > 1 && strings.HasSuffix(path, "/") && strings.HasPrefix(u.Path, path)
	}
}
