package dcr

import (
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/mcp-authd/mcp-authd/internal/strictjson"
	"github.com/mcp-authd/mcp-authd/oauth"
)

// clientMetadata is the client metadata of a registration, in the order of RFC 7591 §2. An absent, null or
// empty member has the zero value.
type clientMetadata struct {
	RedirectURIs    []string // redirect_uris
	AuthMethod      string   // token_endpoint_auth_method
	GrantTypes      []string // grant_types
	ResponseTypes   []string // response_types
	Name            string   // client_name
	ClientURI       string   // client_uri
	LogoURI         string   // logo_uri
	Scope           string   // scope
	Contacts        []string // contacts
	TermsURI        string   // tos_uri
	PolicyURI       string   // policy_uri
	JWKSURI         string   // jwks_uri
	JWKS            []byte   // jwks, an object; nil: absent
	SoftwareID      string   // software_id
	SoftwareVersion string   // software_version
	ApplicationType string   // application_type (OpenID Connect Registration §2)
	RequirePAR      bool     // require_pushed_authorization_requests (RFC 9126 §6)
	DPoPBound       bool     // dpop_bound_access_tokens (RFC 9449 §5.2)
}

// Limits of a registration, in bytes and items. They are far above what any known client sends.
const (
	maxRedirects   = 16
	maxListItems   = 32
	maxNameLength  = 200
	maxTextLength  = 256
	maxURILength   = 2048
	maxScopeLength = 4096
)

// parseRequest parses a registration request. Unknown members are ignored (RFC 7591 §2, AS-139). A
// member with the wrong type or a duplicate member is an error, because two parsers could then
// understand two different clients.
func parseRequest(body []byte) (clientMetadata, error) {
	members, err := parseObject(body)
	if err != nil {
		return clientMetadata{}, err
	}
	r := reader{members: members}
	m := clientMetadata{
		RedirectURIs:    r.list("redirect_uris", maxListItems, oauth.MaxRedirectURILength),
		AuthMethod:      r.text("token_endpoint_auth_method", maxTextLength),
		GrantTypes:      r.list("grant_types", maxListItems, maxTextLength),
		ResponseTypes:   r.list("response_types", maxListItems, maxTextLength),
		Name:            r.text("client_name", 4*maxNameLength),
		ClientURI:       r.text("client_uri", maxURILength),
		LogoURI:         r.text("logo_uri", maxURILength),
		Scope:           r.text("scope", maxScopeLength),
		Contacts:        r.list("contacts", maxListItems, maxTextLength),
		TermsURI:        r.text("tos_uri", maxURILength),
		PolicyURI:       r.text("policy_uri", maxURILength),
		JWKSURI:         r.text("jwks_uri", maxURILength),
		JWKS:            r.object("jwks", maxJWKS),
		SoftwareID:      r.text("software_id", maxTextLength),
		SoftwareVersion: r.text("software_version", maxTextLength),
		ApplicationType: r.text("application_type", maxTextLength),
		RequirePAR:      r.truth("require_pushed_authorization_requests"),
		DPoPBound:       r.truth("dpop_bound_access_tokens"),
	}
	if r.err != nil {
		return clientMetadata{}, r.err
	}
	return m, nil
}

// parseObject splits a JSON object into its members. Names are case-sensitive, and names that differ
// only in case are duplicates.
func parseObject(body []byte) (strictjson.Members, error) {
	members, err := strictjson.Object(body, strictjson.Limits{})
	switch duplicate := (*strictjson.DuplicateError)(nil); {
	case err == nil:
		return members, nil
	case !utf8.Valid(body):
		return nil, badMetadata("The request body is not UTF-8.")
	case errors.As(err, &duplicate):
		return nil, badMetadata("The request body has a member twice.")
	case errors.Is(err, strictjson.ErrLarge):
		return nil, badMetadata("The JSON of the request body is nested too deeply.")
	}
	return nil, badMetadata("The request body must be one JSON object.")
}

// reader decodes typed members of an object and keeps the first error.
type reader struct {
	members strictjson.Members
	err     error
}

func (r *reader) text(name string, limit int) string {
	var s string
	r.decode(name, &s, "a string")
	if len(s) > limit {
		r.fail(fmt.Sprintf("The member %s is longer than %d bytes.", name, limit))
		return ""
	}
	return s
}

func (r *reader) truth(name string) (yes bool) {
	r.decode(name, &yes, "true or false")
	return yes
}

func (r *reader) list(name string, items, limit int) []string {
	var l []string
	r.decode(name, &l, "a list of strings")
	if len(l) > items {
		r.fail(fmt.Sprintf("The member %s has more than %d entries.", name, items))
		return nil
	}
	for _, s := range l {
		if len(s) > limit {
			r.fail(fmt.Sprintf("The member %s has an entry longer than %d bytes.", name, limit))
			return nil
		}
	}
	return l
}

// object returns a member that must be a JSON object, as raw JSON.
func (r *reader) object(name string, limit int) []byte {
	var o map[string]json.RawMessage
	r.decode(name, &o, "an object")
	switch {
	case o == nil:
		return nil
	case len(r.members.Get(name)) > limit:
		r.fail(fmt.Sprintf("The member %s is longer than %d bytes.", name, limit))
		return nil
	}
	return r.members.Get(name)
}

func (r *reader) decode(name string, into any, want string) {
	raw := r.members.Get(name)
	if raw == nil {
		return
	}
	if err := json.Unmarshal(raw, into); err != nil {
		r.fail(fmt.Sprintf("The member %s must be %s.", name, want))
	}
}

func (r *reader) fail(description string) {
	if r.err == nil {
		r.err = badMetadata(description)
	}
}

func badMetadata(description string) *oauth.Error {
	return oauth.NewError(oauth.InvalidClientMetadata, description)
}
