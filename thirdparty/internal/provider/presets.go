package provider

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/claim"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Type describes a type of provider, for administrators who configure one.
type Type struct {
	ID   string // the value of Settings.Type
	Name string // "Google"
	Icon string
	// Protocol is "OpenID Connect" or "OAuth 2.0".
	Protocol string
	// Needs lists the required settings by their names in the configuration file. Takes lists the
	// optional settings that only some types have.
	Needs, Takes []string
	// Scopes are requested at every sign-in unless configured otherwise.
	Scopes oauth.Scopes
	// Refresh describes how to get refresh tokens. Checks describes how the server learns that a
	// session has ended. FreshLogin describes how the provider authenticates the user again.
	Refresh, Checks, FreshLogin string
	// Guide is the page about the type, below docs/.
	Guide string
}

// Types returns all types of providers, the generic ones first.
func Types() []Type {
	out := make([]Type, 0, len(presets))
	for _, p := range presets {
		out = append(out, p.described())
	}
	return out
}

func (p *preset) described() Type {
	t := p.Type
	t.Icon, t.Scopes, t.Guide = t.ID, slices.Clone(p.scopes), "providers/"+t.ID+".md"
	t.Protocol = "OAuth 2.0"
	if p.openID {
		t.Protocol = "OpenID Connect"
	}
	return t
}

// Traits describes the properties of a type that sign-ins depend on.
type Traits struct {
	Type
	OpenID     bool // OpenID Connect: can report when a user signed in, and that one signed out
	LoginHint  bool // a request can name the expected account
	OneGrant   bool // revoking one token of a user revokes all of them
	CheckEvery time.Duration
	// Inputs of rules: which of organizations, teams and tenants the type supports. HostedDomain:
	// the claim hd, not the address, shows the account's organisation. VerifiedEmails: the provider
	// vouches for the addresses in verified_emails.
	Rules          []string
	HostedDomain   bool
	VerifiedEmails bool
	// ComposedSubject means that the subject consists of more than the sub of a token.
	ComposedSubject bool
}

// TraitsOf returns the traits of the type with an ID, or false if there is none.
func TraitsOf(id string) (Traits, bool) {
	p := presetOf(id)
	if p == nil {
		return Traits{}, false
	}
	return Traits{
		Type: p.described(), OpenID: p.openID, LoginHint: p.loginHint != "", OneGrant: p.oneGrant,
		CheckEvery: p.checkEvery,
		Rules:      p.rules, HostedDomain: p.hostedDomain, VerifiedEmails: p.github,
		ComposedSubject: p.subject != nil || p.claims["sub"] != "",
	}, true
}

// preset describes a type of provider.
type preset struct {
	Type
	openID  bool
	scopes  oauth.Scopes
	baseURL string // of the vendor's own service
	issuer  func(s *Settings) string
	// issuerIs checks the issuer in the metadata if it can differ from the configured one.
	issuerIs func(s *Settings) func(string) error
	// tenantOf returns the issuer that a token must have, from a template and the token's claims.
	tenantOf func(template string, claims map[string]any) string
	places   func(s *Settings) endpoints // endpoints of plain OAuth 2.0

	parameters        map[string]string // for every authorization request
	offlineParameters map[string]string // to get a refresh token
	offlineScope      bool              // offline_access gives a refresh token, if the metadata list it
	consentForOffline bool              // only with prompt=consent
	extending         map[string]string // when more scopes are requested
	fresh             map[string]string // to authenticate the user again
	choose            map[string]string // to let the user choose an account; default: fresh, which also allows it
	loginHint         string            // name of the parameter
	narrow            func(s *Settings, p map[string]string)

	clientAuth     string
	secretAudience string // audience of client secrets that are JWTs
	accept         string
	commaScopes    bool
	formPost       bool // responses arrive as a POST
	noUserInfo     bool
	noInspection   bool
	oneGrant       bool
	checkEvery     time.Duration

	claims   map[string]string                           // names in user info
	complete func(raw map[string]any)                    // adds claims under their common names
	subject  func(raw map[string]any, sub string) string // if sub alone is not unique
	lookup   func(ctx context.Context, u *plainOAuth, t Tokens, raw map[string]any) error
	revoke   func(ctx context.Context, u *plainOAuth, t Tokens) error
	// memberScopes are required to read organizations, teams and groups.
	memberScopes oauth.Scopes
	github       bool
	slack        bool
	hostedDomain bool

	rules []string // supported rules among organizations, teams and tenants
}

func presetOf(id string) *preset {
	for _, p := range presets {
		if p.ID == id {
			return p
		}
	}
	return nil
}

func fixedIssuer(issuer string) func(*Settings) string {
	return func(*Settings) string { return issuer }
}

func configuredIssuer(s *Settings) string { return s.Issuer }

var (
	openIDScopes = oauth.Scopes{"openid", "profile", "email"}
	promptLogin  = map[string]string{"prompt": "login", "max_age": "0"}
	promptSelect = map[string]string{"prompt": "select_account"}
	secretNeeded = []string{"client_id", "client_secret"}
	issuerNeeded = []string{"client_id", "client_secret", "issuer"}
)

const (
	byUserInfo = "user info is read; a refused refresh token ends the session"
	byRefresh  = "the refresh token is used; when it is refused the session has ended"
)

// presets lists all types, in the order shown to users. It is never written.
var presets = []*preset{
	{
		Type: Type{
			ID: "oidc", Name: "OpenID Connect", Needs: []string{"client_id", "issuer"},
			Takes:   []string{"client_secret", "client_auth"},
			Refresh: "scope offline_access with prompt=consent, if the provider's metadata list it",
			Checks:  byUserInfo, FreshLogin: "prompt=login, max_age=0",
		},
		openID: true, issuer: configuredIssuer, scopes: openIDScopes, offlineScope: true, consentForOffline: true,
		fresh: promptLogin, loginHint: "login_hint",
		rules: []string{"organizations", "teams"},
	},
	{
		Type: Type{
			ID: "oauth2", Name: "OAuth 2.0",
			Needs: []string{"client_id", "authorization_url", "token_url", "user_info_url"},
			Takes: []string{
				"issuer", "client_secret", "client_auth", "revocation_url", "introspection_url", "claims",
			},
			Refresh: "as the provider gives them", Checks: byUserInfo, FreshLogin: "not known",
		},
		places: func(*Settings) endpoints { return endpoints{} }, rules: []string{"organizations", "teams"},
	},
	google, github, gitlab, entra, okta, auth0, keycloak, slack, discord, apple,
}

var google = &preset{
	Type: Type{
		ID: "google", Name: "Google", Needs: secretNeeded, Refresh: "access_type=offline with prompt=consent",
		Checks:     byUserInfo,
		FreshLogin: "prompt=select_account; Google does not ask for the password again",
	},
	openID: true, issuer: fixedIssuer("https://accounts.google.com"), scopes: openIDScopes,
	// Google does not support offline_access. Without prompt=consent, only a user's very first
	// sign-in returns a refresh token.
	offlineParameters: map[string]string{"access_type": "offline", "prompt": "consent"},
	extending:         map[string]string{"include_granted_scopes": "true"},
	fresh:             promptSelect, loginHint: "login_hint",
	narrow: func(s *Settings, p map[string]string) {
		if len(s.Domains) == 1 {
			p["hd"] = s.Domains[0] // for convenience; the rule is checked on the returned claims
		}
	},
	hostedDomain: true, clientAuth: authPost, oneGrant: true,
}

var gitlab = &preset{
	Type: Type{
		ID: "gitlab", Name: "GitLab", Needs: secretNeeded, Takes: []string{"base_url"}, Refresh: "always, rotating",
		Checks: byUserInfo, FreshLogin: "prompt=login, max_age=0",
	},
	openID: true, baseURL: "https://gitlab.com", issuer: func(s *Settings) string { return s.BaseURL },
	scopes: openIDScopes,
	fresh:  promptLogin, loginHint: "login_hint",
	complete: func(raw map[string]any) {
		if raw["groups"] == nil && raw["groups_direct"] != nil { // the ID token has only these
			raw["groups"] = raw["groups_direct"]
		}
	},
}

var okta = &preset{
	Type: Type{
		ID: "okta", Name: "Okta", Needs: issuerNeeded, Refresh: "scope offline_access", Checks: byUserInfo,
		FreshLogin: "prompt=login, max_age=0",
	},
	openID: true, issuer: configuredIssuer, scopes: openIDScopes, offlineScope: true, fresh: promptLogin,
	loginHint: "login_hint",
}

var auth0 = &preset{
	Type: Type{
		ID: "auth0", Name: "Auth0", Needs: issuerNeeded, Refresh: "scope offline_access", Checks: byUserInfo,
		FreshLogin: "prompt=login, max_age=0",
	},
	openID: true, scopes: openIDScopes, offlineScope: true, fresh: promptLogin, loginHint: "login_hint",
	clientAuth: authPost,
	// Its issuer ends with a slash, which administrators often omit.
	issuer: func(s *Settings) string { return strings.TrimSuffix(s.Issuer, "/") + "/" },
	rules:  []string{"organizations"},
	complete: func(raw map[string]any) {
		if org := claim.Text(raw, "org_id"); org != "" && raw["organizations"] == nil {
			raw["organizations"] = []any{org}
		}
	},
}

var keycloak = &preset{
	Type: Type{
		ID: "keycloak", Name: "Keycloak", Needs: issuerNeeded,
		Refresh:    "always, for as long as the session at Keycloak lasts",
		Checks:     byUserInfo + "; back-channel logout",
		FreshLogin: "prompt=login, max_age=0",
	},
	// offline_access would detach the tokens from the session at Keycloak, and its end could no
	// longer be detected.
	openID: true, issuer: configuredIssuer, scopes: openIDScopes, fresh: promptLogin, loginHint: "login_hint",
}

var apple = &preset{
	Type: Type{
		ID: "apple", Name: "Apple", Needs: []string{"client_id", "team_id", "key_id", "key"}, Refresh: "always",
		Checks: byRefresh + ", once a day, as Apple demands", FreshLogin: "not known",
	},
	openID: true, issuer: fixedIssuer("https://appleid.apple.com"), scopes: oauth.Scopes{"openid", "email", "name"},
	parameters: map[string]string{"response_mode": "form_post"}, formPost: true, // Apple requires it for these scopes
	clientAuth: authJWT, secretAudience: "https://appleid.apple.com", noUserInfo: true, noInspection: true,
	checkEvery: 24 * time.Hour,
}
