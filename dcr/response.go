package dcr

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"

	"github.com/mcp-authd/mcp-authd/internal/storage"
)

// response is the client information response (RFC 7591 §3.2.1, AS-132, AS-133): the issued values,
// then all registered metadata now in force. Members without a value are omitted, because several
// clients fail on null.
type response struct {
	ClientID string `json:"client_id"` // client_id: REQUIRED
	// client_secret: OPTIONAL, confidential clients only
	ClientSecret string `json:"client_secret,omitempty"`
	// client_id_issued_at: OPTIONAL, seconds since the epoch
	ClientIDIssuedAt int64 `json:"client_id_issued_at"`
	// client_secret_expires_at: REQUIRED with a secret; 0: never
	ClientSecretExpiresAt *int64 `json:"client_secret_expires_at,omitempty"`
	// registration_client_uri: where the client manages its registration; with
	// registration_access_token or neither (RFC 7592 §3)
	RegistrationURI   string   `json:"registration_client_uri,omitempty"`
	RegistrationToken string   `json:"registration_access_token,omitempty"` // registration_access_token
	RedirectURIs      []string `json:"redirect_uris,omitempty"`             // redirect_uris: verbatim
	// jwks: private_key_jwt only, instead of jwks_uri
	JWKS       json.RawMessage `json:"jwks,omitempty"`
	JWKSURI    string          `json:"jwks_uri,omitempty"`         // jwks_uri
	AuthMethod string          `json:"token_endpoint_auth_method"` // token_endpoint_auth_method
	// grant_types: authorization_code first
	GrantTypes    []string `json:"grant_types"`
	ResponseTypes []string `json:"response_types,omitempty"` // response_types: ["code"]
	ClientName    string   `json:"client_name,omitempty"`    // client_name
	// scope: advisory, requests may name other scopes
	Scope string `json:"scope,omitempty"`
	Metadata
}

// response describes a client. secret is "" except in the response that issues it.
func (r *Registry) response(ctx context.Context, c storage.Client, secret string) (response, error) {
	out := response{
		JWKS: c.JWKS, JWKSURI: c.JWKSURI,
		ClientID: c.ID, ClientSecret: secret, ClientIDIssuedAt: c.CreatedAt.Unix(),
		RedirectURIs: c.RedirectURIs, AuthMethod: c.AuthMethod, GrantTypes: c.GrantTypes,
		ClientName: c.Name, Scope: c.Scopes.String(),
	}
	if slices.Contains(c.GrantTypes, grantCode) {
		out.ResponseTypes = []string{"code"}
		if out.Scope == "" && r.cfg.DefaultScopes != nil {
			out.Scope = r.cfg.DefaultScopes(ctx).String() // RFC 7591 §2; some clients then request these scopes
		}
	}
	if r.cfg.Endpoint != "" {
		out.RegistrationURI, out.RegistrationToken = r.cfg.Endpoint+"/"+url.PathEscape(c.ID),
			r.sealer.managementToken(c.ID)
	}
	if secret != "" {
		out.ClientSecretExpiresAt = new(int64)
	}
	var err error
	if c.Metadata != nil {
		err = json.Unmarshal(c.Metadata, &out.Metadata)
	}
	return out, err
}
