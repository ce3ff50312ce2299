package authserver

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/mcp-authd/mcp-authd/authserver/internal/entry"
	"github.com/mcp-authd/mcp-authd/authserver/internal/refusal"
	"github.com/mcp-authd/mcp-authd/internal/pages"
	"github.com/mcp-authd/mcp-authd/internal/sentence"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// family is a kind of MCP client that keeps presenting a registration after the server has deleted
// it. Only the client's user can clear it, so the page explains how.
type family struct {
	name    string
	matches func(clientID string, redirect *url.URL) bool
	steps   pages.Text
}

// families are identified by their redirect URIs, because the client is unknown. The page's advice
// is never a decision, and names a family only as likely.
var families = []family{
	{"Claude Code", idPrefix("https://claude.ai/oauth/claude-code"),
		pages.Say("advice.claude_code")},
	{"Claude", onHosts("claude.ai", "claude.com"),
		pages.Say("advice.claude")},
	{"Claude", byScheme("claude"),
		pages.Say("advice.claude")},
	{"ChatGPT", onHosts("chatgpt.com"),
		pages.Say("advice.chatgpt")},
	{"Cursor", onHosts("www.cursor.com"),
		pages.Say("advice.cursor")},
	{"Cursor", byScheme("cursor"),
		pages.Say("advice.cursor")},
	{"VS Code", onHosts("vscode.dev", "insiders.vscode.dev"),
		pages.Say("advice.vscode")},
	{"VS Code", onLoopback("33418", "/"),
		pages.Say("advice.vscode")},
	{"Warp", byScheme("warp"), pages.Say("advice.warp")},
	{"MCP Inspector", onLoopback("6274", ""), pages.Say("advice.inspector")},
	{"MCP Inspector", onLoopback("6276", ""), pages.Say("advice.inspector_cli")},
	{"OpenCode", onLoopback("19876", ""), pages.Say("advice.opencode")},
	{"Codex", onLoopback("", "/callback/"), pages.Say("advice.codex")},
	{"mcp-remote / Gemini CLI", onLoopback("", "/oauth/callback"),
		pages.Say("advice.remote")},
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
func advise(v *pages.Error, e *oauth.Error, status int) {
	switch {
	case e.Code == oauth.InvalidClient:
		v.Title = pages.Say("error.unknown_title")
		if errors.Is(e, refusal.ErrUnknownClient) {
			v.Message = pages.Say("error.unknown_message")
		}
		v.Advice = pages.Say("error.unknown_advice")
	case errors.Is(e, entry.ErrTooManyChanges):
		v.Title, v.Home = pages.Say("error.changes_title"), true
		v.Advice = pages.Say("error.changes_advice")
	case e.Code == oauth.TemporarilyUnavailable, e.Code == oauth.SlowDown:
		v.Title = pages.Say("error.busy_title")
		v.Advice = pages.Say("error.busy_advice")
	case sentence.Cause(e) == refusal.ErrNotRegistered:
		v.Title = pages.Say("error.redirect_title")
		v.Advice = pages.Say("error.redirect_advice")
	case status >= 500:
		v.Title = pages.Say("error.failed_title")
		v.Advice = pages.Say("error.failed_advice")
	case status == http.StatusNotFound:
		v.Title, v.Home = pages.Say("error.not_found"), true
	case e.Code == oauth.AccessDenied: // the user can act on the message
		v.Title, v.Home = pages.Say("error.denied_title"), true
	default:
		v.Title = pages.Say("error.default_title")
		v.Advice = pages.Say("error.default_advice")
	}
}

// adviseStopped returns the advice about a request that cannot be fulfilled. A user can correct an
// address, but not the application's request.
func adviseStopped(e *oauth.Error) pages.Text {
	switch e.Code {
	case oauth.InvalidTarget:
		return pages.Say("stopped.check_address")
	case oauth.AccessDenied, oauth.TemporarilyUnavailable, oauth.ServerError, oauth.LoginRequired,
		oauth.ConsentRequired:
		return pages.Say("stopped.try_again")
	}
	return pages.Say("stopped.tell_makers")
}
