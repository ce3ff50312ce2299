package oauth_test

import (
	"fmt"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// Any loopback port matches (RFC 8252 §7.3). Everything else must be equal.
func ExampleMatchRedirectURI() {
	registered := []string{"http://127.0.0.1/callback", "https://app.example.com/callback"}
	fmt.Println(oauth.MatchRedirectURI(registered, "http://127.0.0.1:49152/callback"))
	fmt.Println(oauth.MatchRedirectURI(registered, "https://app.example.com/callback/"))
	// Output:
	// true
	// false
}

// One resource can be written in several ways. Tokens use the canonical spelling.
func ExampleCanonicalResource() {
	fmt.Println(oauth.CanonicalResource("HTTPS://MCP.Example.com:443/mcp"))
	// Output:
	// https://mcp.example.com/mcp <nil>
}

// A resource server states where to get tokens and which scope they need.
func ExampleBearerChallenge() {
	fmt.Println(oauth.BearerChallenge{
		Scope:            oauth.ParseScopes("notes:read"),
		ResourceMetadata: "https://mcp.example.com/.well-known/oauth-protected-resource/mcp",
	})
	// Output:
	// Bearer scope="notes:read", resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/mcp"
}

// A client picks the challenge that it understands from a 401 response.
func ExampleParseChallenges() {
	challenges, err := oauth.ParseChallenges([]string{`DPoP algs="ES256", Bearer error="invalid_token", scope="mcp"`})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range challenges {
		fmt.Printf("%s: error %q, scope %q\n", c.Scheme, c.Params["error"], c.Params["scope"])
	}
	// Output:
	// DPoP: error "", scope ""
	// Bearer: error "invalid_token", scope "mcp"
}
