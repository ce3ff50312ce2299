package dcr

import (
	"fmt"
	"net/url"
	"path"
	"strings"
)

// Trust is what is thought of a client metadata document because of where it is.
type Trust string

// The decisions of a TrustPolicy.
const (
	TrustAllow Trust = "allow" // known: no warning, and fetched for any request
	TrustAsk   Trust = "ask"   // accepted, and the person is told that the operator does not vouch for it
	TrustDeny  Trust = "deny"  // refused before anything is fetched
)

// TrustPolicy decides by the URL of a metadata document. A pattern is a host
// ("claude.ai", or "*.example.com" for its subdomains), or, for a host where strangers
// can publish too, a URL whose path segments may be "*"
// ("https://chatgpt.com/oauth/*/client.json"). Deny goes before Allow, and a URL in it stands for
// each way to write its place: the publisher of the document chooses how the client id is spelled.
type TrustPolicy struct {
	Allow, Deny []string
	Others      Trust // default: TrustAsk
}

// KnownDocuments are the metadata documents of the MCP clients in use today; it is the
// default of the server's configuration.
var KnownDocuments = []string{
	"https://claude.ai/oauth/claude-code-client-metadata", "https://claude.ai/oauth/mcp-oauth-client-metadata",
	"https://vscode.dev/oauth/client-metadata.json", "https://insiders.vscode.dev/oauth/client-metadata.json",
	"https://zed.dev/oauth/client-metadata.json", "https://goose-docs.ai/oauth/client-metadata.json",
	"https://chatgpt.com/oauth/client.json", "https://chatgpt.com/oauth/*/client.json",
	"https://chatgpt.com/oauth/codex/client.json", "https://chatgpt.com/oauth/codex/*/client.json",
	"https://github.com/copilot/cli/client-metadata.json", "https://opencode.ai/oauth/opencode/client.json",
	"https://api.factory.ai/mcp/oauth-client", "https://grok.com/oauth/mcp-client.json",
	"https://www.notion.so/oauth/mcp-client-metadata.json", "https://app.notion.com/oauth/mcp-client-metadata.json",
	"https://www.mcpjam.com/.well-known/oauth/client-metadata.json", "https://toolhive.dev/oauth/client-metadata.json",
}

// Check reports a pattern that could never match.
func (p TrustPolicy) Check() error {
	for _, pattern := range append(append([]string{}, p.Allow...), p.Deny...) {
		host, isURL := pattern, strings.Contains(pattern, "://")
		if isURL {
			u, err := url.Parse(pattern)
			if err != nil || u.Host == "" || u.Path == "" {
				return fmt.Errorf("%q is not a URL with a path", pattern)
			}
			if _, err := path.Match(u.Path, ""); err != nil {
				return fmt.Errorf("%q is not a valid pattern", pattern)
			}
			continue
		}
		host = strings.TrimPrefix(host, "*.")
		if host == "" || strings.ContainsAny(host, "*/:@ ") {
			return fmt.Errorf("%q is neither a host, nor *. and a domain, nor a URL", pattern)
		}
	}
	switch p.Others {
	case "", TrustAllow, TrustAsk, TrustDeny:
		return nil
	}
	return fmt.Errorf("%q is not one of %s, %s, %s", p.Others, TrustAllow, TrustAsk, TrustDeny)
}

// Of returns the decision for the URL of a document.
func (p TrustPolicy) Of(id string) Trust {
	trust, _ := p.rule(id)
	return trust
}

// allows compares scheme, host and query as they stand; only the path may vary.
func allows(pattern, id string, u *url.URL) bool {
	if !strings.Contains(pattern, "://") {
		return isHost(pattern, u)
	}
	want, err := url.Parse(pattern)
	if err != nil || want.Scheme != u.Scheme || want.Host != u.Host || want.RawQuery != u.RawQuery {
		return pattern == id
	}
	return pattern == id || fits(want.EscapedPath(), u.EscapedPath())
}

// denies compares hosts and paths by what they mean to the DNS and to servers.
func denies(pattern string, u *url.URL) bool {
	if !strings.Contains(pattern, "://") {
		return isHost(pattern, u)
	}
	want, err := url.Parse(pattern)
	if err != nil || !isHost(want.Hostname(), u) {
		return false
	}
	return fits(path.Clean(want.Path), path.Clean(u.Path)) ||
		fits(path.Clean(want.EscapedPath()), path.Clean(u.EscapedPath()))
}

func fits(pattern, in string) bool {
	ok, err := path.Match(pattern, in)
	return ok && err == nil
}

// isHost reports whether a URL is at a host, or with "*." below a domain.
func isHost(pattern string, u *url.URL) bool {
	host := strings.TrimSuffix(u.Hostname(), ".") // the same host to the DNS
	if domain, wildcard := strings.CutPrefix(pattern, "*."); wildcard {
		return strings.HasSuffix(strings.ToLower(host), "."+strings.ToLower(domain))
	}
	return strings.EqualFold(pattern, host)
}
