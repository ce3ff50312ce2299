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
// ("https://chatgpt.com/oauth/*/client.json"). Deny goes before Allow.
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
	u, err := url.Parse(id)
	if err != nil {
		return TrustDeny
	}
	match := func(patterns []string) bool {
		for _, pattern := range patterns {
			if matches(pattern, id, u) {
				return true
			}
		}
		return false
	}
	switch {
	case match(p.Deny):
		return TrustDeny
	case match(p.Allow):
		return TrustAllow
	case p.Others == "":
		return TrustAsk
	}
	return p.Others
}

func matches(pattern, id string, u *url.URL) bool {
	host := strings.TrimSuffix(u.Hostname(), ".") // the same host to the DNS
	switch domain, wildcard := strings.CutPrefix(pattern, "*."); {
	case strings.Contains(pattern, "://"):
		if pattern == id {
			return true
		}
		// Scheme, host and query are compared as they stand; only the path may vary.
		want, err := url.Parse(pattern)
		if err != nil || want.Scheme != u.Scheme || want.Host != u.Host || want.RawQuery != u.RawQuery {
			return false
		}
		ok, err := path.Match(want.EscapedPath(), u.EscapedPath())
		return ok && err == nil
	case wildcard:
		return strings.HasSuffix(strings.ToLower(host), "."+strings.ToLower(domain))
	}
	return strings.EqualFold(pattern, host)
}
