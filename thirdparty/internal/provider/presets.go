package provider

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/claim"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Type describes a type of provider, for people who configure one.
type Type struct {
	ID   string // what Settings.Type is
	Name string // "Google"
	Icon string
	// Protocol is "OpenID Connect" or "OAuth 2.0".
	Protocol string
	// Needs are the settings that have to be given, by their names in the configuration
	// file; Takes are those that only some types have, and that may be given.
	Needs, Takes []string
	// Scopes are asked for at every sign-in, unless the configuration says otherwise.
	Scopes oauth.Scopes
	// Refresh says how we come by refresh tokens, Checks how we learn that a session there
	// has ended, FreshLogin what makes the provider ask for proof again.
	Refresh, Checks, FreshLogin string
	// Guide is the page about it, below docs/.
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

// Traits are what distinguishes a type of provider for those that rest sign-ins on it.
type Traits struct {
	Type
	OpenID     bool // OpenID Connect: it can say when a person signed in, and that one signed out
	LoginHint  bool // a request can name the account that is expected
	OneGrant   bool // a person's tokens are revoked together, whichever is given back
	CheckEvery time.Duration
	// What rules may look at: which of organizations, teams and tenants; whether the claim
	// hd says whose an account is, and an address does not; whether verified_emails are
	// addresses that it vouches for.
	Rules          []string
	HostedDomain   bool
	VerifiedEmails bool
	// ComposedSubject: people are named by more than the sub of a token.
	ComposedSubject bool
}

// TraitsOf returns those of the type with an id, false if there is none.
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

// preset is what we know about a type of provider.
type preset struct {
	Type
	openID  bool
	scopes  oauth.Scopes
	baseURL string // of the product as its maker runs it
	issuer  func(s *Settings) string
	// issuerIs judges the issuer in the metadata, where it is not the one asked for.
	issuerIs func(s *Settings) func(string) error
	// tenantOf returns the issuer that a token must have, by a template and the token.
	tenantOf func(template string, claims map[string]any) string
	places   func(s *Settings) endpoints // of plain OAuth 2.0

	parameters        map[string]string // of every authorization request
	offlineParameters map[string]string // that bring a refresh token
	offlineScope      bool              // offline_access brings one, if the metadata list it
	consentForOffline bool              // ... and only with prompt=consent
	extending         map[string]string // when further scopes are asked for
	fresh             map[string]string // the person has to prove again who they are
	choose            map[string]string // the person chooses an account; default: fresh, at which they can
	loginHint         string            // the parameter for it
	narrow            func(s *Settings, p map[string]string)

	clientAuth     string
	secretAudience string // of client secrets that are JWTs
	accept         string
	commaScopes    bool
	formPost       bool // answers come as a POST
	noUserInfo     bool
	noInspection   bool
	oneGrant       bool
	checkEvery     time.Duration

	claims   map[string]string                           // of user info
	complete func(raw map[string]any)                    // fills in claims that we give a common name
	subject  func(raw map[string]any, sub string) string // where sub alone is not unique
	lookup   func(ctx context.Context, u *plainOAuth, t Tokens, raw map[string]any) error
	revoke   func(ctx context.Context, u *plainOAuth, t Tokens) error
	// memberScopes are needed to learn of organizations, teams and groups.
	memberScopes oauth.Scopes
	github       bool
	slack        bool
	hostedDomain bool

	rules []string // those of organizations, teams and tenants that mean something here
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

// presets, in the order in which people are offered them. Never written.
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
	// Google knows no offline_access. Without prompt=consent only the very first sign-in
	// of a person brings a refresh token.
	offlineParameters: map[string]string{"access_type": "offline", "prompt": "consent"},
	extending:         map[string]string{"include_granted_scopes": "true"},
	fresh:             promptSelect, loginHint: "login_hint",
	narrow: func(s *Settings, p map[string]string) {
		if len(s.Domains) == 1 {
			p["hd"] = s.Domains[0] // for comfort; the rule is checked on what comes back
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
	// Its issuer ends with a slash, which people leave out.
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
	// offline_access would detach the tokens from the session there, which is the one
	// thing that we want to know about.
	openID: true, issuer: configuredIssuer, scopes: openIDScopes, fresh: promptLogin, loginHint: "login_hint",
}

var apple = &preset{
	Type: Type{
		ID: "apple", Name: "Apple", Needs: []string{"client_id", "team_id", "key_id", "key"}, Refresh: "always",
		Checks: byRefresh + ", once a day, as Apple demands", FreshLogin: "not known",
	},
	openID: true, issuer: fixedIssuer("https://appleid.apple.com"), scopes: oauth.Scopes{"openid", "email", "name"},
	parameters: map[string]string{"response_mode": "form_post"}, formPost: true, // Apple insists, for these scopes
	clientAuth: authJWT, secretAudience: "https://appleid.apple.com", noUserInfo: true, noInspection: true,
	checkEvery: 24 * time.Hour,
}
