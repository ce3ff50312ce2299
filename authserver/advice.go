package authserver

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/web"
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
	{"Claude Code", idPrefix("https://claude.ai/oauth/claude-code"),
		"Run /mcp in Claude Code, choose this server and then \"Clear authentication\", and authenticate again."},
	{"Claude", onHosts("claude.ai", "claude.com"),
		"Open the connectors in the settings of Claude, disconnect this one or remove it, and add it again."},
	{"Claude", byScheme("claude"),
		"Open the connectors in the settings of Claude, disconnect this one or remove it, and add it again."},
	{"ChatGPT", onHosts("chatgpt.com"),
		"Open the connectors in the settings of ChatGPT, delete this one, and add it again."},
	{"Cursor", onHosts("www.cursor.com"),
		"In the MCP settings of Cursor, log out of this server or remove it, and add it again."},
	{"Cursor", byScheme("cursor"),
		"In the MCP settings of Cursor, log out of this server or remove it, and add it again."},
	{"VS Code", onHosts("vscode.dev", "insiders.vscode.dev"),
		"Run \"Authentication: Remove Dynamic Authentication Providers\" from the command palette, choose this server, and connect again."},
	{"VS Code", onLoopback("33418", "/"),
		"Run \"Authentication: Remove Dynamic Authentication Providers\" from the command palette, choose this server, and connect again."},
	{"Warp", byScheme("warp"), "In the MCP settings of Warp, log out of this server or remove it, and add it again."},
	{"the MCP Inspector", onLoopback("6274", ""), "Clear the OAuth state in the Inspector and connect again."},
	{"the MCP Inspector", onLoopback("6276", ""), "Run the Inspector with --relogin."},
	{"OpenCode", onLoopback("19876", ""), "Run: opencode mcp logout, then: opencode mcp auth"},
	{"Codex", onLoopback("", "/callback/"), "Run: codex mcp logout NAME, then: codex mcp login NAME"},
	{"mcp-remote or Gemini CLI", onLoopback("", "/oauth/callback"),
		"For mcp-remote delete the folder .mcp-auth in your home folder; for Gemini CLI delete the entry of this server in .gemini/mcp-oauth-tokens.json. Then connect again."},
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
		return path == "" || u.Path == path ||
			len(path) > 1 && strings.HasSuffix(path, "/") && strings.HasPrefix(u.Path, path)
	}
}

// advise fills in what a page says beyond the protocol's own words.
func advise(v *web.Error, e *oauth.Error, status int) {
	switch {
	case e.Code == oauth.InvalidClient:
		v.Title = "This application is not known here"
		if errors.Is(e, refusal.ErrUnknownClient) {
			v.Message = "This server has no registration of the application that sent you here: it never had one, or has removed it."
		}
		v.Advice = "Remove this server from the application, or clear its saved sign-in, and connect again: it will then register again."
	case e.Code == oauth.TemporarilyUnavailable, e.Code == oauth.SlowDown:
		v.Title = "The server is busy"
		v.Advice = "Nothing was lost. Please try again in a moment. If it happens again, tell the operator of this server the number below."
	case e.Unwrap() == refusal.ErrNotRegistered:
		v.Title = "The answer would go to an unknown address"
		v.Advice = "If you did not start this yourself, close this page. Otherwise remove this server from the application and connect again, " +
			"so that it registers the address that it uses now."
	case status >= 500:
		v.Title = "This server has failed"
		v.Advice = "You did nothing wrong. Please try again. If it happens again, tell the operator of this server the number below."
	case status == http.StatusNotFound:
		v.Title, v.Home = "There is no such page", true
	case e.Code == oauth.AccessDenied: // what the message says is for the person to change
		v.Title, v.Home = "This was not done", true
	default:
		v.Title = "This sign-in cannot go on"
		v.Advice = "Go back to the application and start signing in again. If it happens again, the application is at fault: tell its makers what this page says."
	}
}

// adviseStopped says what to do about a request that cannot be carried out: a person may
// correct an address, but not what their application sends.
func adviseStopped(e *oauth.Error) string {
	switch e.Code {
	case oauth.InvalidTarget:
		return "Check the address of the MCP server in the application. If it is right, tell the operator of this server the number below."
	case oauth.AccessDenied, oauth.TemporarilyUnavailable, oauth.ServerError, oauth.LoginRequired,
		oauth.ConsentRequired:
		return "If you started this sign-in yourself, return to the application and try again."
	}
	return "Trying again does not help before the application has changed: tell its makers what this page says."
}
