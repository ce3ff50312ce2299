package thirdparty

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// Microsoft Entra: one issuer for each tenant, behind one address for all of them.

const consumersTenant = "9188040d-6c67-4c5b-b112-36a304b66dad" // of personal accounts

var (
	guid        = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)
	tenantPlace = "{tenantid}"
)

var entra = &preset{
	Type: Type{
		ID: "entra", Name: "Microsoft", Needs: []string{"client_id", "client_secret", "tenant"}, Takes: []string{"base_url"}, Refresh: "scope offline_access",
		Checks: byRefresh, FreshLogin: "prompt=login",
	},
	openID: true, baseURL: "https://login.microsoftonline.com", scopes: openIDScopes, offlineScope: true, clientAuth: authPost,
	issuer:   func(c *Connector) string { return c.BaseURL + "/" + c.Tenant + "/v2.0" },
	issuerIs: entraIssuer,
	tenantOf: func(template string, claims map[string]any) string {
		tid := text(claims, "tid")
		if !guid.MatchString(tid) {
			return "" // is nobody's issuer
		}
		return strings.ReplaceAll(template, tenantPlace, tid)
	},
	// User info is Microsoft Graph's: it says no more than the ID token, refuses tokens
	// for other resources, and believes a token until it expires.
	noUserInfo: true, noInspection: true,
	fresh: map[string]string{"prompt": "login"}, loginHint: "login_hint",
	rules: []string{"tenants"},
	subject: func(raw map[string]any, sub string) string {
		if tid := text(raw, "tid"); tid != "" {
			return tid + "/" + sub
		}
		return ""
	},
	// Whoever runs a tenant can write any address into an account of theirs; this claim
	// says that the domain of the address is the tenant's.
	complete: func(raw map[string]any) {
		raw["email_verified"] = truth(raw, "xms_edov") || text(raw, "xms_edov") == "1"
	},
}

// entraIssuer accepts the issuer of the tenant, and the template where there are many.
func entraIssuer(c *Connector) func(string) error {
	return func(found string) error {
		tenant, ok := strings.CutPrefix(found, c.BaseURL+"/")
		tenant, ok2 := strings.CutSuffix(tenant, "/v2.0")
		switch {
		case !ok || !ok2:
		case c.Tenant == "common" || c.Tenant == "organizations":
			if tenant == tenantPlace {
				return nil
			}
		case c.Tenant == "consumers":
			if tenant == consumersTenant {
				return nil
			}
		case tenant == c.Tenant, !guid.MatchString(c.Tenant) && guid.MatchString(tenant): // named by a domain
			return nil
		}
		return fmt.Errorf("%w: the issuer is %q", errGarbage, printable(found, 200))
	}
}

// matchesTemplate reports whether an issuer is one of those that a template stands for.
func matchesTemplate(template, iss string) bool {
	before, after, ok := strings.Cut(template, tenantPlace)
	if !ok || len(iss) < len(before)+len(after) {
		return template == iss
	}
	return strings.HasPrefix(iss, before) && strings.HasSuffix(iss, after) && guid.MatchString(iss[len(before):len(iss)-len(after)])
}

// Slack: OpenID Connect, with errors that come with status 200.

var slack = &preset{
	Type: Type{
		ID: "slack", Name: "Slack", Needs: secretNeeded, Refresh: "where token rotation is on", Checks: byUserInfo, FreshLogin: "not known",
	},
	openID: true, issuer: fixedIssuer("https://slack.com"), scopes: openIDScopes, clientAuth: authPost, slack: true, rules: []string{"organizations"},
	narrow: func(r Rules, p map[string]string) {
		if len(r.Organizations) == 1 {
			p["team"] = r.Organizations[0]
		}
	},
	complete: func(raw map[string]any) {
		if team := text(raw, "https://slack.com/team_id"); team != "" {
			raw["organizations"] = []any{team}
		}
	},
	// The id of a user is unique within a workspace.
	subject: func(raw map[string]any, sub string) string {
		if team := text(raw, "https://slack.com/team_id"); team != "" {
			return team + "/" + sub
		}
		return ""
	},
	revoke: func(ctx context.Context, u *upstream, t tokens) error {
		body, _, err := u.get(ctx, "https://slack.com/api/auth.revoke", t.Access)
		if err != nil {
			return err
		}
		raw, err := object(body)
		if err != nil {
			return err
		}
		return u.slackFailure(raw)
	},
}

// slackFailure is the error in an answer that says so itself.
func (u *upstream) slackFailure(raw map[string]any) error {
	if ok, said := raw["ok"].(bool); !u.preset.slack || !said || ok {
		return nil
	}
	return refusal(http.StatusOK, text(raw, "error"))
}

// Discord: plain OAuth 2.0.

var discord = &preset{
	Type: Type{
		ID: "discord", Name: "Discord", Needs: secretNeeded, Refresh: "always", Checks: byUserInfo, FreshLogin: "prompt=consent; Discord does not ask for the password again",
	},
	scopes: oauth.Scopes{"identify", "email"}, baseURL: "https://discord.com", clientAuth: authPost,
	places: func(c *Connector) endpoints {
		api := c.BaseURL + "/api"
		return endpoints{
			authorize: c.BaseURL + "/oauth2/authorize", token: api + "/oauth2/token", userInfo: api + "/users/@me", revoke: api + "/oauth2/token/revoke",
		}
	},
	parameters:   map[string]string{"prompt": "none"}, // asks again only for what was not allowed yet
	fresh:        map[string]string{"prompt": "consent"},
	claims:       map[string]string{"sub": "id", "preferred_username": "username", "name": "global_name", "email_verified": "verified"},
	rules:        []string{"organizations"},
	enrichScopes: func(*Connector) oauth.Scopes { return oauth.Scopes{"guilds"} },
	lookup: func(ctx context.Context, u *upstream, t tokens, raw map[string]any) error {
		delete(raw, "organizations")
		if !u.enrich && !t.Scopes.Has("guilds") {
			return nil
		}
		guilds, err := names(ctx, u, t, u.BaseURL+"/api/users/@me/guilds?limit=200&page=", "id") // all in one page
		raw["organizations"], raw["groups"] = guilds, guilds
		return err
	},
}

// GitHub: plain OAuth 2.0, and an API. Tokens of an OAuth app do not expire.

var githubPreset = &preset{
	Type: Type{
		ID: "github", Name: "GitHub", Needs: secretNeeded, Takes: []string{"base_url"}, Refresh: "none: tokens do not expire; GitHub Apps: always, rotating",
		Checks: "the account, its addresses, organisations and teams are read", FreshLogin: "prompt=select_account; GitHub does not ask for the password again",
	},
	scopes: oauth.Scopes{"read:user", "user:email"}, baseURL: "https://github.com", github: true, commaScopes: true, accept: "application/vnd.github+json",
	places: func(c *Connector) endpoints {
		return endpoints{authorize: c.BaseURL + "/login/oauth/authorize", token: c.BaseURL + "/login/oauth/access_token", userInfo: gitHubAPI(c) + "/user"}
	},
	fresh: map[string]string{"prompt": "select_account"}, loginHint: "login", clientAuth: authPost,
	claims:       map[string]string{"sub": "id", "preferred_username": "login", "picture": "avatar_url"},
	rules:        []string{"organizations", "teams"},
	enrichScopes: func(*Connector) oauth.Scopes { return oauth.Scopes{"read:org"} },
	lookup:       gitHubLookup,
	revoke:       gitHubRevoke,
}

func gitHubAPI(c *Connector) string {
	if c.BaseURL == "https://github.com" {
		return "https://api.github.com"
	}
	if host, ok := strings.CutPrefix(c.BaseURL, "https://"); ok && strings.HasSuffix(host, ".ghe.com") {
		return "https://api." + host
	}
	return c.BaseURL + "/api/v3" // Enterprise Server
}

// gitHubLookup reads what the account itself does not say.
func gitHubLookup(ctx context.Context, u *upstream, t tokens, raw map[string]any) error {
	for _, own := range []string{"email", "email_verified", "verified_emails", "organizations", "teams", "groups"} {
		delete(raw, own) // an address in the profile is public, and not the one that was verified
	}
	api := gitHubAPI(u.Connector)
	if t.Scopes.Has("user:email") || t.Scopes.Has("user") {
		if err := gitHubAddresses(ctx, u, t, api, raw); err != nil {
			return err
		}
	}
	if !u.enrich && !t.Scopes.Has("read:org") {
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

func gitHubAddresses(ctx context.Context, u *upstream, t tokens, api string, raw map[string]any) error {
	var verified []any
	err := pages(ctx, u, t, api+"/user/emails"+paged, func(m map[string]any) {
		address := text(m, "email")
		if address == "" || !truth(m, "verified") {
			return
		}
		verified = append(verified, address)
		if truth(m, "primary") {
			raw["email"], raw["email_verified"] = address, true
		}
	})
	raw["verified_emails"] = verified
	return err
}

// gitHubRevoke deletes the token; the app stays authorized, so that the next sign-in is
// no first one.
func gitHubRevoke(ctx context.Context, u *upstream, t tokens) error {
	body, err := json.Marshal(map[string]string{"access_token": t.Access})
	if err != nil {
		return err
	}
	at := gitHubAPI(u.Connector) + "/applications/" + url.PathEscape(u.ClientID) + "/token"
	req, err := http.NewRequestWithContext(ctx, http.MethodDelete, at, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("%w: %w", errGarbage, err)
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
		return refusal(resp.StatusCode, "")
	}
	return nil
}

// What is read of a list: the pages that we count ourselves, for a link could lead
// anywhere. Whoever is in more organisations than that is not known to be in the last ones.
const (
	pageSize = 100
	maxPages = 10
	paged    = "?per_page=100&page="
)

// pages calls each with every object of a list; at ends where the number of the page goes.
func pages(ctx context.Context, u *upstream, t tokens, at string, each func(map[string]any)) error {
	ctx = listing(ctx)
	for page := 1; page <= maxPages; page++ {
		body, _, err := u.get(ctx, at+strconv.Itoa(page), t.Access)
		if err != nil {
			return err
		}
		d := json.NewDecoder(bytes.NewReader(body))
		d.UseNumber()
		var found []map[string]any
		if err := d.Decode(&found); err != nil {
			return fmt.Errorf("%w: not a list of objects", errGarbage)
		}
		if _, err := d.Token(); !errors.Is(err, io.EOF) {
			return fmt.Errorf("%w: more than a list", errGarbage)
		}
		for _, m := range found {
			each(m)
		}
		if len(found) != pageSize {
			break
		}
	}
	return nil
}

// names returns members of every object of a list, joined by slashes.
func names(ctx context.Context, u *upstream, t tokens, at string, paths ...string) ([]any, error) {
	out := []any{}
	err := pages(ctx, u, t, at, func(m map[string]any) {
		var parts []string
		for _, path := range paths {
			if v, ok := member(m, path); ok {
				if s := text(map[string]any{"": v}, ""); s != "" {
					parts = append(parts, s)
				}
			}
		}
		if len(parts) == len(paths) {
			out = append(out, strings.Join(parts, "/"))
		}
	})
	return out, err
}
