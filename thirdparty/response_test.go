package thirdparty

import (
	"testing"

	"github.com/mcp-authd/mcp-authd/internal/testkit/fakeidp"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Security L7 of the providers' report: invalid authorization responses.
func TestResponseTwice(t *testing.T) {
	for name, value := range map[string]string{
		"error": "access_denied", "code": "another", "iss": "https://evil.example.com",
	} {
		t.Run("PL7 RFC 6749 3.1: "+name+" twice, beside a good code", func(t *testing.T) {
			r := newRig(t, nil)
			b := r.leave(signIn)
			b.back[name] = append(b.back[name], value, value)
			if _, err := r.come(b, "corp"); code(err) != oauth.ServerError {
				t.Errorf("got %v", err)
			}
			if n := r.up.Calls(fakeidp.Token); n != 0 {
				t.Error("the code was redeemed")
			}
			r.nothingMade()
		})
	}
}

func TestResponseOfAKnownProvider(t *testing.T) {
	plain := func(c *Config) {
		up := c.Connectors[0]
		c.Connectors = append(c.Connectors, Connector{
			ID: "plain", Type: "oauth2", Name: "Plain", ClientID: up.ClientID, ClientSecret: up.ClientSecret,
			AuthorizationURL: up.Issuer + "/authorize", TokenURL: up.Issuer + "/token",
			UserInfoURL: up.Issuer + "/userinfo",
		})
	}
	sentRequest := signIn
	sentRequest.Provider = "plain"
	t.Run("PL7 RFC 9207 2.4: the iss of another provider that we know is refused where none is configured",
		func(t *testing.T) {
			r := newRig(t, plain)
			if _, err := r.come(r.leave(sentRequest), "plain"); code(err) != oauth.ServerError ||
				r.up.Calls(fakeidp.Token) != 0 {
				t.Errorf("got %v", err)
			}
		})
	t.Run("an unknown issuer is accepted as it is", func(t *testing.T) {
		r := newRig(t, plain)
		r.up.Behave(func(b *fakeidp.Behaviour) { b.ResponseIssuer = "https://as.example.com" })
		if _, err := r.come(r.leave(sentRequest), "plain"); err != nil {
			t.Error(err)
		}
	})
}
