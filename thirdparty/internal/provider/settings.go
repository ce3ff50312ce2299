package provider

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// Settings configures the client of one provider. Names and meanings are the same as in
// thirdparty.Connector. Type and ClientID are required, and everything that Types lists for the
// type.
type Settings struct {
	Type                   string
	ClientID, ClientSecret string
	ClientAuth             string
	Key, KeyID, TeamID     string

	Issuer, BaseURL, Tenant                                                  string
	AuthorizationURL, TokenURL, UserInfoURL, RevocationURL, IntrospectionURL string

	// EventKeysURL is the URL of the keys that sign security events, if they differ from the keys
	// for ID tokens.
	EventKeysURL string

	Claims     map[string]string
	Scopes     oauth.Scopes
	Parameters map[string]string
	Networks   []netip.Prefix
	// Detached disables later checks of the session at the provider.
	Detached bool

	// Judged reports whether a rule or group here depends on the provider's claims. Nil: none does.
	Judged func() bool
	// Memberships means that a rule depends on organizations, teams or groups, which some providers
	// return only on request.
	Memberships bool
	// Domains and Organizations are the only ones admitted; empty: all. They only shape the
	// request. Rules check the response elsewhere.
	Domains, Organizations []string
}

// WithDefaults fills in the defaults of the type. An unknown type is left unchanged.
func (s Settings) WithDefaults() Settings {
	p := presetOf(s.Type)
	if p == nil {
		return s
	}
	for field, value := range map[*string]string{&s.BaseURL: p.baseURL, &s.ClientAuth: p.clientAuth} {
		if *field == "" {
			*field = value
		}
	}
	s.BaseURL = strings.TrimSuffix(s.BaseURL, "/")
	s.Tenant = strings.ToLower(s.Tenant)
	if p.issuer != nil && (s.Issuer != "" || !slices.Contains(p.Needs, "issuer")) {
		s.Issuer = p.issuer(&s)
	}
	if s.Scopes == nil {
		s.Scopes = p.scopes
	}
	if p.openID {
		s.Scopes = oauth.Scopes{"openid"}.Union(s.Scopes)
	}
	if s.Memberships {
		s.Scopes = s.Scopes.Union(p.memberScopes)
	}
	return s
}

// Validate reports errors in the settings as given, and makes no request. Its error names the field
// as the configuration file does.
func (s Settings) Validate() error {
	if err := s.checkType(); err != nil {
		return err
	}
	if err := s.checkNeeds(); err != nil {
		return err
	}
	full := s.WithDefaults()
	for _, check := range []func() error{full.checkURLs, full.checkRequest, full.checkClientAuth} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (s *Settings) checkType() error {
	if presetOf(s.Type) != nil {
		return nil
	}
	var known []string
	for _, p := range presets {
		known = append(known, p.ID)
	}
	return fmt.Errorf("type: %q is not one of %s", s.Type, strings.Join(known, ", "))
}

// given returns the fields that only some types need or take.
func (s *Settings) given() map[string]string {
	claims := ""
	if len(s.Claims) > 0 {
		claims = "given"
	}
	return map[string]string{
		"client_id": s.ClientID, "client_secret": s.ClientSecret, "issuer": s.Issuer, "base_url": s.BaseURL,
		"tenant": s.Tenant,
		"key":    s.Key, "key_id": s.KeyID, "team_id": s.TeamID, "claims": claims,
		"authorization_url": s.AuthorizationURL, "token_url": s.TokenURL, "user_info_url": s.UserInfoURL,
		"revocation_url": s.RevocationURL, "introspection_url": s.IntrospectionURL,
		"events.keys_url": s.EventKeysURL,
	}
}

func (s *Settings) checkNeeds() error {
	p, given := presetOf(s.Type), s.given()
	for _, name := range p.Needs {
		if given[name] == "" {
			return fmt.Errorf("%s: is required for type %s", name, s.Type)
		}
	}
	for _, name := range []string{"issuer", "base_url", "tenant", "key", "key_id", "team_id"} {
		if given[name] != "" && !slices.Contains(p.Needs, name) && !slices.Contains(p.Takes, name) {
			return fmt.Errorf("%s: means nothing for type %s", name, s.Type)
		}
	}
	return nil
}

var tenantName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]*$`)

func (s *Settings) checkURLs() error {
	given := s.given()
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if given[name] == "" || !strings.HasSuffix(name, "_url") && name != "issuer" {
			continue
		}
		if err := webURL(given[name]); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if u, _ := url.Parse(given[name]); u.RawQuery != "" && (name == "issuer" || name == "base_url") {
			return fmt.Errorf("%s: must not have a query", name)
		}
	}
	if s.Tenant != "" && !tenantName.MatchString(s.Tenant) {
		return errors.New("tenant: must be a tenant id, a domain, or one of organizations, common, consumers")
	}
	return nil
}

// reserved lists parameters of the authorization request that cannot be configured.
var reserved = []string{
	"client_id", "client_secret", "redirect_uri", "response_type", "scope", "state", "nonce", "code_challenge",
	"code_challenge_method",
	"resource", "request", "request_uri", "id_token_hint",
}

func (s *Settings) checkRequest() error {
	for _, scope := range s.Scopes {
		if !oauth.ValidScope(scope) {
			return fmt.Errorf("scopes: %q is not a scope", scope)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Parameters)) {
		if slices.Contains(reserved, name) {
			return fmt.Errorf("parameters: %s is not yours to set", name)
		}
	}
	if s.Parameters["response_mode"] != "" && s.Parameters["response_mode"] != "query" &&
		s.Parameters["response_mode"] != "form_post" {
		return errors.New("parameters: response_mode must be query or form_post")
	}
	return nil
}

func (s *Settings) checkClientAuth() error {
	p := presetOf(s.Type)
	switch s.ClientAuth {
	case "", authBasic, authPost:
		if s.ClientAuth != "" && s.ClientSecret == "" {
			return fmt.Errorf("client_secret: is required for client_auth %s", s.ClientAuth)
		}
	case authNone:
		if s.ClientSecret != "" {
			return errors.New("client_auth: none, but there is a client_secret")
		}
	case authJWT:
		if p.secretAudience == "" {
			return fmt.Errorf("client_auth: jwt is for type apple, not %s", s.Type)
		}
		if _, err := parseKey(s.Key); err != nil {
			return fmt.Errorf("key: %w", err)
		}
	default:
		return fmt.Errorf("client_auth: %q is not one of basic, post, jwt, none", s.ClientAuth)
	}
	return nil
}

// urls returns the URLs in the settings.
func (s *Settings) urls() []string {
	var out []string
	for _, u := range []string{
		s.Issuer, s.BaseURL, s.AuthorizationURL, s.TokenURL, s.UserInfoURL, s.RevocationURL, s.IntrospectionURL,
		s.EventKeysURL,
	} {
		if u != "" {
			out = append(out, u)
		}
	}
	return out
}

// overridden returns e with the configured endpoints replaced.
func (s *Settings) overridden(e endpoints) endpoints {
	for _, o := range []struct {
		configured string
		to         *string
	}{
		{s.AuthorizationURL, &e.authorize}, {s.TokenURL, &e.token}, {s.UserInfoURL, &e.userInfo},
		{s.RevocationURL, &e.revoke}, {s.IntrospectionURL, &e.introspect},
	} {
		if o.configured != "" {
			*o.to = o.configured
		}
	}
	return e
}
