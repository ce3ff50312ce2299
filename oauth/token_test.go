package oauth_test

import (
	"encoding/json"
	"testing"

	"github.com/mcp-authd/mcp-authd/oauth"
)

func TestWireForms(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   any
		want string
	}{
		{"RFC 7662 2.2: inactive says nothing else", oauth.Introspection{}, `{"active":false}`},
		{"RFC 7662 2.2: active",
			oauth.Introspection{
				Active: true, Scope: "mcp", ClientID: "mcp_c", TokenType: "Bearer", Expires: 2, IssuedAt: 1,
				Subject: "usr_u", Audience: "https://h/mcp", Issuer: "https://as", TokenID: "j", GrantID: "g",
			},
			`{"active":true,"scope":"mcp","client_id":"mcp_c","token_type":"Bearer","exp":2,"iat":1,"sub":"usr_u","aud":"https://h/mcp","iss":"https://as","jti":"j","gid":"g"}`},
		{"AS-118 RFC 9068 2.2: the required claims are always there", oauth.AccessTokenClaims{},
			`{"iss":"","exp":0,"aud":"","sub":"","client_id":"","iat":0,"jti":""}`},
		{"RFC 6749 5.1: no refresh token, no member",
			oauth.TokenResponse{AccessToken: "a", TokenType: "Bearer", ExpiresIn: 900, Scope: "mcp"},
			`{"access_token":"a","token_type":"Bearer","expires_in":900,"scope":"mcp"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := json.Marshal(tt.in)
			if err != nil || string(got) != tt.want {
				t.Errorf("got %s, %v\nwant %s", got, err, tt.want)
			}
		})
	}
}
