package provider

import (
	"context"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// discord is the preset for Discord, which speaks plain OAuth 2.0.
var discord = &preset{
	Type: Type{
		ID: "discord", Name: "Discord", Needs: secretNeeded, Refresh: "always", Checks: byUserInfo,
		FreshLogin: "prompt=consent; Discord does not ask for the password again",
	},
	scopes: oauth.Scopes{"identify", "email"}, baseURL: "https://discord.com", clientAuth: authPost, oneGrant: true,
	places: func(s *Settings) endpoints {
		api := s.BaseURL + "/api"
		return endpoints{
			authorize: s.BaseURL + "/oauth2/authorize", token: api + "/oauth2/token", userInfo: api + "/users/@me",
			revoke: api + "/oauth2/token/revoke",
		}
	},
	parameters: map[string]string{"prompt": "none"}, // asks the user only for scopes that were not granted yet
	fresh:      map[string]string{"prompt": "consent"},
	claims: map[string]string{
		"sub": "id", "preferred_username": "username", "name": "global_name", "email_verified": "verified",
	},
	rules:        []string{"organizations"},
	memberScopes: oauth.Scopes{"guilds"},
	lookup: func(ctx context.Context, u *plainOAuth, t Tokens, raw map[string]any) error {
		delete(raw, "organizations")
		if !u.Memberships && !t.Scopes.Has("guilds") {
			return nil
		}
		guilds, err := names(ctx, u, t, u.BaseURL+"/api/users/@me/guilds?limit=200&page=", "id") // all in one page
		raw["organizations"], raw["groups"] = guilds, guilds
		return err
	},
}
