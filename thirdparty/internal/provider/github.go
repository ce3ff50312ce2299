package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/mcp-authd/mcp-authd/internal/claim"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// github is the preset for GitHub, which speaks plain OAuth 2.0 plus its own API. Tokens of an
// OAuth app do not expire.
var github = &preset{
	Type: Type{
		ID: "github", Name: "GitHub", Needs: secretNeeded, Takes: []string{"base_url"},
		Refresh:    "none: tokens do not expire; GitHub Apps: always, rotating",
		Checks:     "the account, its addresses, organisations and teams are read",
		FreshLogin: "prompt=select_account; GitHub does not ask for the password again",
	},
	scopes: oauth.Scopes{"read:user", "user:email"}, baseURL: "https://github.com", github: true, commaScopes: true,
	accept: "application/vnd.github+json",
	places: func(s *Settings) endpoints {
		return endpoints{
			authorize: s.BaseURL + "/login/oauth/authorize", token: s.BaseURL + "/login/oauth/access_token",
			userInfo: gitHubAPI(s) + "/user",
		}
	},
	fresh: map[string]string{"prompt": "select_account"}, loginHint: "login", clientAuth: authPost,
	claims:       map[string]string{"sub": "id", "preferred_username": "login", "picture": "avatar_url"},
	rules:        []string{"organizations", "teams"},
	memberScopes: oauth.Scopes{"read:org"},
	lookup:       gitHubLookup,
	revoke:       gitHubRevoke,
}

func gitHubAPI(s *Settings) string {
	if s.BaseURL == "https://github.com" {
		return "https://api.github.com"
	}
	if host, ok := strings.CutPrefix(s.BaseURL, "https://"); ok && strings.HasSuffix(host, ".ghe.com") {
		return "https://api." + host
	}
	return s.BaseURL + "/api/v3" // Enterprise Server
}

// gitHubLookup adds data that the account response lacks: verified addresses, organisations and
// teams.
func gitHubLookup(ctx context.Context, u *plainOAuth, t Tokens, raw map[string]any) error {
	for _, own := range []string{"email", "email_verified", "verified_emails", "organizations", "teams", "groups"} {
		delete(raw, own) // an address in the profile is public and may not be verified
	}
	api := gitHubAPI(u.Settings)
	if t.Scopes.Has("user:email") || t.Scopes.Has("user") {
		if err := gitHubAddresses(ctx, u, t, api, raw); err != nil {
			return err
		}
	}
	if !u.Memberships && !t.Scopes.Has("read:org") {
		return nil
	}
	orgs, err := names(ctx, u, t, api+"/user/orgs"+paged, "login")
	if err != nil {
		return err
	}
	teams, err := names(ctx, u, t, api+"/user/teams"+paged, "organization.login", "slug")
	raw["organizations"], raw["teams"], raw["groups"] = orgs, teams, append(append([]any{}, orgs...), teams...)
	return err
}

func gitHubAddresses(ctx context.Context, u *plainOAuth, t Tokens, api string, raw map[string]any) error {
	var verified []any
	err := pages(ctx, u, t, api+"/user/emails"+paged, func(m map[string]any) {
		address := claim.Text(m, "email")
		if address == "" || !claim.True(m, "verified") {
			return
		}
		verified = append(verified, address)
		if claim.True(m, "primary") {
			raw["email"], raw["email_verified"] = address, true
		}
	})
	raw["verified_emails"] = verified
	return err
}

// gitHubRevoke deletes the token but keeps the app authorized, so that the next sign-in shows no
// consent page.
func gitHubRevoke(ctx context.Context, u *plainOAuth, t Tokens) error {
	body, err := json.Marshal(map[string]string{"access_token": t.Access})
	if err != nil {
		return err
	}
	at := gitHubAPI(u.Settings) + "/applications/" + url.PathEscape(u.ClientID) + "/token"
	req, err := http.NewRequestWithContext(ctx, http.MethodDelete, at, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrGarbage, err)
	}
	req.SetBasicAuth(u.ClientID, u.ClientSecret)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", u.preset.accept)
	resp, err := u.client.Do(req)
	if err != nil {
		return failed(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusNoContent {
		return refusal(resp.StatusCode, "", "")
	}
	return nil
}
