package dcr

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcp-authd/mcp-authd/internal/identifier"
	"github.com/mcp-authd/mcp-authd/internal/secrets"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// Spec describes a client that an administrator creates (AS-169). Every field but Now has a
// default.
type Spec struct {
	ID           string   // default: random
	Name         string   // shown to users at consent
	RedirectURIs []string // required for authorization_code
	// GrantTypes defaults to authorization_code and refresh_token with redirect URIs, and to
	// client_credentials without.
	GrantTypes []string
	// AuthMethod defaults to private_key_jwt with keys, to client_secret_basic for clients that act
	// without a user, and to none otherwise.
	AuthMethod string
	JWKS       []byte       // public keys for private_key_jwt, a JSON Web Key Set
	JWKSURI    string       // URL of the public keys, instead of JWKS
	Scopes     oauth.Scopes // the limit for client_credentials
	Resources  []string     // resources that client_credentials may name; empty: all
	RequirePAR bool         // requires pushed authorization requests (RFC 9126)
	DPoP       bool         // binds all tokens of the client to a key (RFC 9449 §5.2)
	Redirects  oauth.RedirectPolicy
	Now        time.Time
}

// Mint validates s and returns the client and its secret. The secret is empty for a public client
// and cannot be recovered later. Mint stores nothing: pass the client to storage.Clients.PutClient.
// Errors are sentences for the administrator.
func Mint(s Spec) (storage.Client, string, error) {
	s = s.withDefaults()
	if err := s.check(); err != nil {
		return storage.Client{}, "", err
	}
	resources, err := canonicalResources(s.Resources)
	if err != nil {
		return storage.Client{}, "", err
	}
	c := storage.Client{
		JWKSURI: s.JWKSURI, ID: s.ID, Name: cleanText(s.Name, maxNameLength), RedirectURIs: s.RedirectURIs,
		GrantTypes: s.GrantTypes, AuthMethod: s.AuthMethod,
		Scopes: s.Scopes, Resources: resources, Source: storage.SourceStatic,
		CreatedAt: s.Now.UTC().Truncate(time.Millisecond),
		Metadata:  Metadata{RequirePAR: s.RequirePAR, DPoPBound: s.DPoP}.encode(),
	}
	if len(s.JWKS) > 0 {
		if c.JWKS, err = checkKeys(s.JWKS); err != nil {
			return storage.Client{}, "", err
		}
	}
	secret := issueSecret(&c)
	return c, secret, nil
}

func (s Spec) withDefaults() Spec {
	if s.ID == "" {
		s.ID = secrets.ID(idPrefix)
	}
	s.GrantTypes = fullNames(s.GrantTypes)
	if len(s.GrantTypes) == 0 {
		s.GrantTypes = []string{grantMachine}
		if len(s.RedirectURIs) > 0 {
			s.GrantTypes = slices.Clone(defaultGrants)
		}
	}
	if s.AuthMethod == "" {
		s.AuthMethod = "none"
		if len(s.JWKS) > 0 || s.JWKSURI != "" {
			s.AuthMethod = privateKeyJWT
		} else if slices.Contains(s.GrantTypes, grantMachine) || onlyAuthenticated(s.GrantTypes) {
			s.AuthMethod = "client_secret_basic"
		}
	}
	return s
}

// shortNames maps short names to grant types whose names are URNs.
var shortNames = map[string]string{
	"device": grantDevice, "device_code": grantDevice, "jwt-bearer": grantBearer, "token-exchange": grantExchange,
}

// knownNames lists allGrants by their short names.
var knownNames = []string{grantCode, grantRefresh, grantMachine, "device", "jwt-bearer", "token-exchange"}

// onlyAuthenticated reports whether grants contains only grant types that require client
// authentication.
func onlyAuthenticated(grants []string) bool {
	return !slices.ContainsFunc(grants, func(g string) bool {
		return g != grantMachine && g != grantBearer && g != grantExchange
	})
}

func fullNames(grants []string) []string {
	out := slices.Clone(grants)
	for i, g := range out {
		if full, ok := shortNames[g]; ok {
			out[i] = full
		}
	}
	return out
}

func (s Spec) check() error {
	if err := checkID(s.ID); err != nil {
		return err
	}
	if identifier.IsClient(s.Name) {
		return fmt.Errorf("the name %q must not look like a client id", s.Name)
	}
	if !slices.Contains(authMethods, s.AuthMethod) {
		return fmt.Errorf("authentication method %q is not one of %s", s.AuthMethod, strings.Join(authMethods, ", "))
	}
	for _, g := range s.GrantTypes {
		if !slices.Contains(allGrants, g) {
			return fmt.Errorf("grant type %q is not one of %s", g, strings.Join(knownNames, ", "))
		}
	}
	code, machine := slices.Contains(s.GrantTypes, grantCode), slices.Contains(s.GrantTypes, grantMachine)
	switch {
	case !code && !machine && !slices.Contains(s.GrantTypes, grantDevice) &&
		!slices.Contains(s.GrantTypes, grantBearer) && !slices.Contains(s.GrantTypes, grantExchange):
		return fmt.Errorf("%s alone gives no tokens: the grant types need one of the others", grantRefresh)
	case slices.Contains(s.GrantTypes, grantExchange) && s.AuthMethod == "none":
		return fmt.Errorf("%s needs a client that authenticates; helpers of a public client need no registration",
			grantExchange)
	case machine && s.AuthMethod == "none": // OAuth 2.1 §4.2
		return fmt.Errorf(
			"%s needs a client that authenticates: use client_secret_basic, client_secret_post or private_key_jwt",
			grantMachine,
		)
	case (s.AuthMethod == privateKeyJWT) != (len(s.JWKS) > 0 || s.JWKSURI != "") || len(s.JWKS) > 0 && s.JWKSURI != "":
		return fmt.Errorf(
			"%s needs the client's public keys, either as a key set or the https URL of one, and other methods have none",
			privateKeyJWT,
		)
	case s.JWKSURI != "" && !strings.HasPrefix(s.JWKSURI, "https://") && !loopbackURL(s.JWKSURI):
		return fmt.Errorf("the key set URL %q is not an https URL", s.JWKSURI)
	case !code && s.RequirePAR:
		return fmt.Errorf("an authorization request to push needs %s", grantCode)
	case !code && len(s.RedirectURIs) > 0:
		return fmt.Errorf("redirect URIs are of no use without %s", grantCode)
	case code:
		if err := admitRedirects(s.Redirects, s.RedirectURIs); err != nil {
			return errors.New(oauth.AsError(err).Description)
		}
	}
	for _, t := range s.Scopes {
		if !oauth.ValidScope(t) {
			return fmt.Errorf("%q is not a scope: no spaces, quotes or backslashes", t)
		}
	}
	return nil
}

// checkID limits IDs to characters that need no escaping in a URL or a Basic header. An ID must
// also not look like a user ID, because both share the "sub" claim (AS-120).
func checkID(id string) error {
	if len(id) > maxNameLength || identifier.Reserved(id) && !strings.HasPrefix(id, idPrefix) {
		return fmt.Errorf("client id %q is too long, begins like an id of another kind (usr_, grt_ and others) or means "+
			"something else", id)
	}
	for _, c := range id {
		if !(c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || strings.ContainsRune("-._", c)) {
			return fmt.Errorf("client id %q has the character %q: use letters, digits, '-', '.' and '_'", id, c)
		}
	}
	return nil
}

func canonicalResources(in []string) (out []string, err error) {
	for _, raw := range in {
		uri, err := oauth.CanonicalResource(raw)
		if err != nil {
			return nil, fmt.Errorf("resource %q: %w", raw, err)
		}
		out = append(out, uri)
	}
	return out, nil
}
