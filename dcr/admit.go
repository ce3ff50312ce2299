package dcr

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mcp-authd/mcp-authd/internal/attempt"
	"github.com/mcp-authd/mcp-authd/internal/safehttp"
	"github.com/mcp-authd/mcp-authd/internal/storage"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// authMethods lists the values of token_endpoint_auth_method that a client can register. The order
// is part of the sealed form: append only.
var authMethods = []string{"none", "client_secret_post", "client_secret_basic", privateKeyJWT}

const privateKeyJWT = oauth.PrivateKeyJWT

// allGrants lists every grant type that a client can be registered for. The order is part of the
// sealed form (append only) and of every response. authorization_code comes first because some
// clients use the first entry.
var allGrants = []string{grantCode, grantRefresh, grantMachine, grantDevice, grantBearer, grantExchange}

// selfServiceGrants lists the grant types that a client may register for itself. client_credentials
// is missing on purpose: the administrator decides who may have access without a user (AS-178).
var selfServiceGrants = []string{grantCode, grantRefresh, grantDevice}

// machineGrants lists the grant types that a confidential client may register for itself if
// Config.MachineClients is set. Only the administrator can assign the rest of allGrants.
var machineGrants = []string{grantCode, grantRefresh, grantMachine, grantDevice}

// defaultGrants are registered for a client that names no grant types.
var defaultGrants = []string{grantCode, grantRefresh}

const (
	grantCode     = oauth.GrantCode
	grantRefresh  = oauth.GrantRefresh
	grantMachine  = oauth.GrantClientCredentials
	grantDevice   = oauth.GrantDeviceCode
	grantBearer   = oauth.GrantJWTBearer
	grantExchange = oauth.GrantTokenExchange
)

// Metadata describes a client to users, in the order of RFC 7591 §2, and holds its demands on the
// server. It is unverified and grants nothing. It is stored as the JSON of storage.Client.Metadata.
type Metadata struct {
	ClientURI string `json:"client_uri,omitempty"` // client_uri: OPTIONAL, the client's home page
	// logo_uri: OPTIONAL; never loaded by the server's pages (AS-147)
	LogoURI   string   `json:"logo_uri,omitempty"`
	Contacts  []string `json:"contacts,omitempty"`   // contacts: OPTIONAL, usually mail addresses
	TermsURI  string   `json:"tos_uri,omitempty"`    // tos_uri: OPTIONAL
	PolicyURI string   `json:"policy_uri,omitempty"` // policy_uri: OPTIONAL
	// software_id: OPTIONAL, the same for all installations
	SoftwareID      string `json:"software_id,omitempty"`
	SoftwareVersion string `json:"software_version,omitempty"` // software_version: OPTIONAL
	ApplicationType string `json:"application_type,omitempty"` // application_type: OPTIONAL, "native" or "web"
	// require_pushed_authorization_requests: OPTIONAL (RFC 9126 §6); storage.Client.Demands reads
	// it
	RequirePAR bool `json:"require_pushed_authorization_requests,omitempty"`
	// dpop_bound_access_tokens: OPTIONAL, RFC 9449 §5.2; storage.Client.Demands reads it
	DPoPBound bool `json:"dpop_bound_access_tokens,omitempty"`
}

// admit returns the client to register: the intersection of the request and the supported values,
// or an error. Surplus values are dropped rather than refused, because one refused value locks a
// client out permanently.
func (r *Registry) admit(ctx context.Context, m clientMetadata) (storage.Client, error) {
	method, err := admitMethod(m.AuthMethod)
	if err != nil {
		return storage.Client{}, err
	}
	grants, err := r.admitGrants(m, method)
	if err != nil {
		return storage.Client{}, err
	}
	if slices.Contains(grants, grantCode) || len(m.RedirectURIs) > 0 {
		if err := admitRedirects(r.cfg.Redirects, m.RedirectURIs); err != nil {
			return storage.Client{}, err
		}
	}
	scopes := oauth.ParseScopes(m.Scope)
	if r.cfg.KnownScopes != nil {
		scopes = scopes.Intersect(r.cfg.KnownScopes(ctx))
	}
	c := storage.Client{
		Name: cleanText(m.Name, maxNameLength), RedirectURIs: m.RedirectURIs, GrantTypes: grants,
		AuthMethod: method, Scopes: scopes, Metadata: m.display().encode(),
	}
	if method == privateKeyJWT {
		err = admitKeys(&c, m, r.docs.fetch)
	} else if m.JWKS != nil && m.JWKSURI != "" {
		err = errTwoKeySets
	}
	return c, err
}

var errTwoKeySets = badMetadata("jwks and jwks_uri cannot both be given.") // RFC 7591 §2, AS-143

// admitKeys sets the public keys of a private_key_jwt client, or their URL.
func admitKeys(c *storage.Client, m clientMetadata, fetch *safehttp.Client) error {
	switch {
	case m.JWKS != nil && m.JWKSURI != "":
		return errTwoKeySets
	case m.JWKS != nil:
		keys, err := checkKeys(m.JWKS)
		if err != nil {
			return badMetadata("jwks: " + err.Error() + ".")
		}
		c.JWKS = keys
	case webURL(m.JWKSURI) == "" || !strings.HasPrefix(m.JWKSURI, "https://") && !loopbackURL(m.JWKSURI):
		return badMetadata("private_key_jwt needs jwks, or jwks_uri with an https URL.")
	default:
		if err := reachable(m.JWKSURI, fetch); err != nil {
			return err
		}
		c.JWKSURI = m.JWKSURI
	}
	return nil
}

// reachable refuses a jwks_uri whose host the server never fetches from (AS-161).
func reachable(jwksURI string, fetch *safehttp.Client) error {
	u, err := url.Parse(jwksURI)
	if err == nil {
		err = fetch.Check(u)
	}
	if err != nil {
		return badMetadata("jwks_uri has a host that this server never reads from.").Because(err)
	}
	return nil
}

// loopbackURL reports whether raw is an http URL on this machine, which development permits.
func loopbackURL(raw string) bool {
	u, err := url.Parse(raw)
	return err == nil && u.Scheme == "http" && oauth.IsLoopbackHost(u.Hostname())
}

// admitMethod maps an absent method to "none", not to client_secret_basic as in RFC 7591 §2
// (AS-135). Clients that omit it are public ones, and the response names the method.
func admitMethod(asked string) (string, error) {
	switch {
	case asked == "":
		return "none", nil
	case slices.Contains(authMethods, asked):
		return asked, nil
	}
	return "", badMetadata("token_endpoint_auth_method must be one of " + strings.Join(authMethods, ", ") + ".")
}

// admitGrants drops grant types that self-registered clients cannot have. The rest must be usable
// with the only response type, "code" (RFC 7591 §2.1).
func (r *Registry) admitGrants(m clientMetadata, method string) ([]string, error) {
	offered := selfServiceGrants
	if r.cfg.MachineClients && method != "none" { // OAuth 2.1 §4.2: confidential clients only
		offered = machineGrants
	}
	grants := slices.Clone(defaultGrants)
	if len(m.GrantTypes) > 0 {
		grants = grantsOf(grantBits(m.GrantTypes, offered), offered)
	}
	code := slices.Contains(grants, grantCode)
	switch {
	case !code && !slices.Contains(grants, grantMachine) && !slices.Contains(grants, grantDevice):
		return nil, badMetadata(
			"grant_types must include authorization_code; clients that act without a person are created by the operator.",
		)
	case code && len(m.ResponseTypes) > 0 && !slices.Contains(m.ResponseTypes, "code"):
		return nil, badMetadata("response_types must include code.")
	}
	return grants, nil
}

// admitRedirects requires at least one redirect URI, and that the policy admits each one (RFC 7591
// §2, §5, AS-138).
func admitRedirects(policy oauth.RedirectPolicy, uris []string) error {
	switch {
	case len(uris) == 0:
		return oauth.NewError(oauth.InvalidRedirectURI, "redirect_uris must have at least one entry.")
	case len(uris) > maxRedirects:
		return oauth.NewError(oauth.InvalidRedirectURI,
			fmt.Sprintf("redirect_uris has more than %d entries.", maxRedirects))
	}
	for i, u := range uris {
		if err := policy.Check(u); err != nil {
			return refusedRedirect(i+1, u, err)
		}
	}
	return nil
}

// refusedRedirect returns an error that says why a redirect URI is refused and which setting would
// permit it.
func refusedRedirect(entry int, uri string, err error) error {
	scheme, rest, _ := strings.Cut(uri, ":")
	host, _, _ := strings.Cut(strings.TrimPrefix(rest, "//"), "/")
	what, cause := err.Error(), err
	switch {
	case errors.Is(err, oauth.ErrRedirectScheme):
		what += ": add " + cleanText(scheme, maxNameLength) + " to registration.private_use_schemes to permit it"
		cause = attempt.CauseScheme.Because(err)
	case errors.Is(err, oauth.ErrRedirectInClear):
		what += ", since " + cleanText(host, maxNameLength) + " is reached without TLS"
		cause = attempt.CauseInClear.Because(err)
	}
	return oauth.NewError(oauth.InvalidRedirectURI,
		oauth.SafeDescription(fmt.Sprintf("Entry %d of redirect_uris: %s.", entry, what))).Because(cause)
}

// display returns the metadata that is shown to users. It omits a malformed link or an invalid
// value instead of refusing it, because no decision depends on them.
func (m clientMetadata) display() Metadata {
	d := Metadata{
		ClientURI: webURL(m.ClientURI), LogoURI: webURL(m.LogoURI),
		TermsURI: webURL(m.TermsURI), PolicyURI: webURL(m.PolicyURI),
		SoftwareID:      cleanText(m.SoftwareID, maxTextLength),
		SoftwareVersion: cleanText(m.SoftwareVersion, maxTextLength),
		RequirePAR:      m.RequirePAR,
		DPoPBound:       m.DPoPBound, // AS-142
	}
	for _, c := range m.Contacts {
		if c = cleanText(c, maxTextLength); c != "" {
			d.Contacts = append(d.Contacts, c)
		}
	}
	if m.ApplicationType == "native" || m.ApplicationType == "web" {
		d.ApplicationType = m.ApplicationType // AS-140: recorded, no rule depends on it
	}
	return d
}

// encode returns the JSON of m, or nil if m is empty.
func (m Metadata) encode() []byte {
	b, err := json.Marshal(m)
	if err != nil || string(b) == "{}" {
		return nil // encoding strings cannot fail
	}
	return b
}

// webURL returns raw if a page may link to it: an absolute http or https URL in
// ASCII, without user information, which could pass for another host.
func webURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.User != nil {
		return ""
	}
	if strings.ContainsFunc(raw, func(c rune) bool { return c <= ' ' || c >= 0x7f }) {
		return ""
	}
	return raw
}

// cleanText makes untrusted text safe to show on pages and terminals. It removes control and format
// characters, which could reverse, hide or overwrite adjacent text, collapses white space, and cuts
// the result to limit bytes.
func cleanText(s string, limit int) string {
	s = strings.Map(func(c rune) rune {
		switch {
		case unicode.IsSpace(c):
			return ' '
		case !unicode.IsGraphic(c), c == utf8.RuneError:
			return -1
		}
		return c
	}, s)
	s = strings.Join(strings.Fields(s), " ")
	if len(s) <= limit {
		return s
	}
	s = s[:limit]
	for !utf8.ValidString(s) {
		s = s[:len(s)-1]
	}
	return strings.TrimSpace(s)
}
