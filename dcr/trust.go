package dcr

import (
	"fmt"
	"net/url"
	"path"
	"strings"
)

// Trust is the decision about a client metadata document, based on its URL.
type Trust string

// The decisions of a TrustPolicy.
const (
	TrustAllow Trust = "allow" // known: no warning, and fetched for any request
	TrustAsk   Trust = "ask"   // accepted, with a warning to the user that the administrator does not vouch for it
	TrustDeny  Trust = "deny"  // refused without a fetch
)

// TrustPolicy decides by the URL of a metadata document. A pattern is a host ("claude.ai"), all
// subdomains of one ("*.example.com"), or a URL whose path segments may be "*"
// ("https://chatgpt.com/oauth/*/client.json"). Use a URL for a host where strangers can also
// publish.
//
// Deny takes precedence over Allow. A URL in Deny matches every spelling of the same location,
// because the publisher of the document chooses how the client ID is spelled.
type TrustPolicy struct {
	Allow, Deny []string
	Others      Trust // default: TrustAsk
}

// KnownDocuments lists the metadata documents of current MCP clients. It is the default of the
// server's configuration.
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

// Check returns an error for a pattern that could never match, or an unknown value of Others.
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

// allows compares scheme, host and query literally. Only the path may contain wildcards.
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

// denies compares hosts as DNS does and paths as servers do.
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

// isHost reports whether the host of u matches pattern: a host name, or "*." and a domain.
func isHost(pattern string, u *url.URL) bool {
	host := strings.TrimSuffix(u.Hostname(), ".") // DNS treats both as the same host
	if domain, wildcard := strings.CutPrefix(pattern, "*."); wildcard {
		return strings.HasSuffix(strings.ToLower(host), "."+strings.ToLower(domain))
	}
	return strings.EqualFold(pattern, host)
}
