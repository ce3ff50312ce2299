package authserver

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/mcp-authd/mcp-authd/authserver/internal/entry"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/oauth"
	"github.com/mcp-authd/mcp-authd/web"
)

// family is a kind of MCP client that keeps presenting a registration after the server has deleted
// it. Only the client's user can clear it, so the page explains how.
type family struct {
	name    string
	matches func(clientID string, redirect *url.URL) bool
	steps   web.Text
}

// families are identified by their redirect URIs, because the client is unknown. The page's advice
// is never a decision, and names a family only as likely.
var families = []family{
	{"Claude Code", idPrefix("https://claude.ai/oauth/claude-code"),
		web.Say("advice.claude_code")},
	{"Claude", onHosts("claude.ai", "claude.com"),
		web.Say("advice.claude")},
	{"Claude", byScheme("claude"),
		web.Say("advice.claude")},
	{"ChatGPT", onHosts("chatgpt.com"),
		web.Say("advice.chatgpt")},
	{"Cursor", onHosts("www.cursor.com"),
		web.Say("advice.cursor")},
	{"Cursor", byScheme("cursor"),
		web.Say("advice.cursor")},
	{"VS Code", onHosts("vscode.dev", "insiders.vscode.dev"),
		web.Say("advice.vscode")},
	{"VS Code", onLoopback("33418", "/"),
		web.Say("advice.vscode")},
	{"Warp", byScheme("warp"), web.Say("advice.warp")},
	{"MCP Inspector", onLoopback("6274", ""), web.Say("advice.inspector")},
	{"MCP Inspector", onLoopback("6276", ""), web.Say("advice.inspector_cli")},
	{"OpenCode", onLoopback("19876", ""), web.Say("advice.opencode")},
	{"Codex", onLoopback("", "/callback/"), web.Say("advice.codex")},
	{"mcp-remote / Gemini CLI", onLoopback("", "/oauth/callback"),
		web.Say("advice.remote")},
}

// familyOf returns the first matching family.
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

// onLoopback matches a port, or any port if it is empty, and a path or its prefix.
func onLoopback(port, path string) func(string, *url.URL) bool {
	return func(_ string, u *url.URL) bool {
		if u.Scheme != "http" || port != "" && u.Port() != port {
			return false
		}
		return path == "" || u.Path == path ||
			len(path) > 1 && strings.HasSuffix(path, "/") && strings.HasPrefix(u.Path, path)
	}
}

// advise adds title and advice to an error page.
func advise(v *web.Error, e *oauth.Error, status int) {
	switch {
	case e.Code == oauth.InvalidClient:
		v.Title = web.Say("error.unknown_title")
		if errors.Is(e, refusal.ErrUnknownClient) {
			v.Message = web.Say("error.unknown_message")
		}
		v.Advice = web.Say("error.unknown_advice")
	case errors.Is(e, entry.ErrTooManyChanges):
		v.Title, v.Home = web.Say("error.changes_title"), true
		v.Advice = web.Say("error.changes_advice")
	case e.Code == oauth.TemporarilyUnavailable, e.Code == oauth.SlowDown:
		v.Title = web.Say("error.busy_title")
		v.Advice = web.Say("error.busy_advice")
	case e.Unwrap() == refusal.ErrNotRegistered:
		v.Title = web.Say("error.redirect_title")
		v.Advice = web.Say("error.redirect_advice")
	case status >= 500:
		v.Title = web.Say("error.failed_title")
		v.Advice = web.Say("error.failed_advice")
	case status == http.StatusNotFound:
		v.Title, v.Home = web.Say("error.not_found"), true
	case e.Code == oauth.AccessDenied: // the user can act on the message
		v.Title, v.Home = web.Say("error.denied_title"), true
	default:
		v.Title = web.Say("error.default_title")
		v.Advice = web.Say("error.default_advice")
	}
}

// adviseStopped returns the advice about a request that cannot be fulfilled. A user can correct an
// address, but not the application's request.
func adviseStopped(e *oauth.Error) web.Text {
	switch e.Code {
	case oauth.InvalidTarget:
		return web.Say("stopped.check_address")
	case oauth.AccessDenied, oauth.TemporarilyUnavailable, oauth.ServerError, oauth.LoginRequired,
		oauth.ConsentRequired:
		return web.Say("stopped.try_again")
	}
	return web.Say("stopped.tell_makers")
}
