package metadata

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"

	"github.com/mcp-authd/mcp-authd/oauth"
)

// AuthorizationServer holds authorization server metadata. Members are in the order of RFC 8414 §2,
// followed by those of later documents. Empty members are omitted, never sent as null or as an
// empty array (RFC 8414 §3.2, AS-22): several clients fail on either.
type AuthorizationServer struct {
	// issuer: REQUIRED, byte for byte the issuer that the client built the URL from
	Issuer string `json:"issuer"`
	// authorization_endpoint: REQUIRED here; without query, because clients append "?"
	AuthorizationEndpoint string `json:"authorization_endpoint"`
	TokenEndpoint         string `json:"token_endpoint"` // token_endpoint: REQUIRED here
	// jwks_uri: OPTIONAL here, REQUIRED by OpenID Connect Discovery; keys of access tokens
	JWKSURI string `json:"jwks_uri,omitempty"`
	// registration_endpoint: OPTIONAL, present while RFC 7591 registration is on
	RegistrationEndpoint string `json:"registration_endpoint,omitempty"`
	// scopes_supported: RECOMMENDED; several clients request all of it
	ScopesSupported Values `json:"scopes_supported,omitempty"`
	ResponseTypes   Values `json:"response_types_supported"`           // response_types_supported: REQUIRED
	ResponseModes   Values `json:"response_modes_supported,omitempty"` // response_modes_supported: OPTIONAL
	// grant_types_supported: OPTIONAL; absent would mean implicit
	GrantTypes Values `json:"grant_types_supported,omitempty"`
	// authorization_grant_profiles_supported: OPTIONAL, ID-JAG "Metadata"
	GrantProfiles Values `json:"authorization_grant_profiles_supported,omitempty"`

	// token_endpoint_auth_methods_supported: OPTIONAL; "none" first, some clients take the first
	TokenAuthMethods Values `json:"token_endpoint_auth_methods_supported,omitempty"`
	// token_endpoint_auth_signing_alg_values_supported: REQUIRED with a JWT method
	TokenAuthAlgorithms Values `json:"token_endpoint_auth_signing_alg_values_supported,omitempty"`

	// service_documentation: OPTIONAL, for developers
	ServiceDocumentation string `json:"service_documentation,omitempty"`
	UILocales            Values `json:"ui_locales_supported,omitempty"` // ui_locales_supported: OPTIONAL, BCP 47
	ACRs                 Values `json:"acr_values_supported,omitempty"` // acr_values_supported: OPTIONAL, RFC 9470 §7
	PolicyURI            string `json:"op_policy_uri,omitempty"`        // op_policy_uri: OPTIONAL
	TermsURI             string `json:"op_tos_uri,omitempty"`           // op_tos_uri: OPTIONAL

	// revocation_endpoint: OPTIONAL, RFC 7009
	RevocationEndpoint string `json:"revocation_endpoint,omitempty"`
	// revocation_endpoint_auth_methods_supported: OPTIONAL
	RevocationAuthMethods Values `json:"revocation_endpoint_auth_methods_supported,omitempty"`
	// revocation_endpoint_auth_signing_alg_values_supported: REQUIRED with a JWT method
	RevocationAuthAlgorithms Values `json:"revocation_endpoint_auth_signing_alg_values_supported,omitempty"`
	// introspection_endpoint: OPTIONAL, RFC 7662
	IntrospectionEndpoint string `json:"introspection_endpoint,omitempty"`
	// introspection_endpoint_auth_methods_supported: OPTIONAL
	IntrospectionAuthMethods Values `json:"introspection_endpoint_auth_methods_supported,omitempty"`
	// introspection_endpoint_auth_signing_alg_values_supported: REQUIRED with a JWT method
	IntrospectionAuthAlgorithms Values `json:"introspection_endpoint_auth_signing_alg_values_supported,omitempty"`

	// code_challenge_methods_supported: REQUIRED by MCP 2025-11-25; without it clients stop
	CodeChallengeMethods Values `json:"code_challenge_methods_supported,omitempty"`

	// identity_chaining_requested_token_types_supported: token types that an ID token can be
	// exchanged for (ID-JAG §7)
	IdentityChaining Values `json:"identity_chaining_requested_token_types_supported,omitempty"`

	// pushed_authorization_request_endpoint: RFC 9126 §5
	PushedRequestEndpoint string `json:"pushed_authorization_request_endpoint,omitempty"`

	// device_authorization_endpoint: RFC 8628 §4
	DeviceAuthorizationEndpoint string `json:"device_authorization_endpoint,omitempty"`

	// OpenID Connect Discovery 1.0 §3, for the openid-configuration copy only.
	// subject_types_supported: REQUIRED there
	SubjectTypes Values `json:"subject_types_supported,omitempty"`
	// id_token_signing_alg_values_supported: REQUIRED there, with RS256
	IDTokenAlgorithms Values `json:"id_token_signing_alg_values_supported,omitempty"`
	// Asserted lists the signing algorithms of ID tokens for clients that the operator registered.
	// Empty if no client gets ID tokens.
	Asserted Values `json:"-"`

	// authorization_response_iss_parameter_supported: RFC 9207 §3; true if and only if iss is sent
	AuthorizationResponseIss bool `json:"authorization_response_iss_parameter_supported,omitempty"`
	// client_id_metadata_document_supported: true if such client ids are accepted
	ClientIDMetadataDocument bool `json:"client_id_metadata_document_supported,omitempty"`
	// dpop_signing_alg_values_supported: OPTIONAL, RFC 9449 §5.1
	DPoPAlgorithms Values `json:"dpop_signing_alg_values_supported,omitempty"`
	// protected_resources: OPTIONAL, RFC 9728 §4
	ProtectedResources Values `json:"protected_resources,omitempty"`

	// protected_resource_scopes: every scope of each protected resource. Not a registered member
	// (RFC 8414 §2 permits others). MCP servers compare the scopes they require with it; clients
	// still request scopes_supported.
	ResourceScopes map[string]Values `json:"protected_resource_scopes,omitempty"`
	// resource_reports_endpoint: where resource servers report refused requests and tool calls. Not
	// a registered member.
	ResourceReportsEndpoint string `json:"resource_reports_endpoint,omitempty"`
	// clearance_endpoint: where resource servers request approval of one tool call. Not a
	// registered member.
	ClearanceEndpoint string `json:"clearance_endpoint,omitempty"`
}

// Values is a list of strings in a metadata document.
type Values []string

// UnmarshalJSON implements json.Unmarshaler. It keeps the strings of a list and skips everything
// else, so that an unexpected element in another server's metadata does not hide the rest.
func (v *Values) UnmarshalJSON(b []byte) error {
	*v = nil
	var list []any
	if json.Unmarshal(b, &list) != nil {
		return nil
	}
	for _, one := range list {
		if s, ok := one.(string); ok {
			*v = append(*v, s)
		}
	}
	return nil
}

// OpenIDConfiguration returns the copy of m to serve as openid-configuration. It adds the members
// that OpenID Connect Discovery requires, because clients that check the document against that
// schema reject an incomplete one (AS-33). RS256 is always listed in addition to the algorithms in
// use, because §3 of that document requires it.
func (m AuthorizationServer) OpenIDConfiguration() AuthorizationServer {
	if len(m.SubjectTypes) == 0 {
		m.SubjectTypes = Values{"public"}
	}
	if len(m.Asserted) > 0 {
		m.ScopesSupported = append(slices.Clone(m.ScopesSupported), oauth.OpenID)
	}
	if len(m.IDTokenAlgorithms) == 0 {
		m.IDTokenAlgorithms = slices.Clone(m.Asserted)
	}
	if !slices.Contains(m.IDTokenAlgorithms, "RS256") {
		m.IDTokenAlgorithms = append(m.IDTokenAlgorithms, "RS256")
	}
	return m
}

// Validate returns an error if a conforming client would reject m.
func (m AuthorizationServer) Validate() error {
	if err := ValidateIssuer(m.Issuer); err != nil {
		return err
	}
	required := map[string]string{"authorization_endpoint": m.AuthorizationEndpoint, "token_endpoint": m.TokenEndpoint}
	for member, value := range required {
		if err := checkEndpoint(member, value); err != nil {
			return err
		}
	}
	switch {
	case !slices.Contains(m.ResponseTypes, "code"):
		return errors.New("metadata: response_types_supported lacks code")
	case len(m.GrantTypes) == 0:
		return errors.New("metadata: grant_types_supported is empty, which would mean implicit") // AS-25
	case !slices.Contains(m.CodeChallengeMethods, "S256"):
		return errors.New("metadata: code_challenge_methods_supported lacks S256") // AS-24
	case unsigned(m.TokenAuthMethods, m.TokenAuthAlgorithms):
		return errors.New("metadata: private_key_jwt without token_endpoint_auth_signing_alg_values_supported") // AS-27
	case unsigned(m.RevocationAuthMethods, m.RevocationAuthAlgorithms):
		// RFC 8414 §2
		return errors.New("metadata: private_key_jwt without revocation_endpoint_auth_signing_alg_values_supported")
	case unsigned(m.IntrospectionAuthMethods, m.IntrospectionAuthAlgorithms):
		// RFC 8414 §2
		return errors.New("metadata: private_key_jwt without introspection_endpoint_auth_signing_alg_values_supported")
	case len(m.SubjectTypes) > 0 && m.JWKSURI == "":
		return errors.New("metadata: an openid-configuration needs jwks_uri") // AS-33
	}
	return nil
}

// unsigned reports whether an endpoint accepts private_key_jwt but lists no signing algorithms.
func unsigned(methods, algorithms Values) bool {
	return slices.Contains(methods, "private_key_jwt") && len(algorithms) == 0
}

func checkEndpoint(member, value string) error {
	u, err := url.Parse(value)
	if err != nil || u.Host == "" || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return fmt.Errorf("metadata: %s %q is not an absolute URL without query and fragment", member, value)
	}
	return checkTransport(member, u)
}
