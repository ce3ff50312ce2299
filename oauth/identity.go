package oauth

// The scope and the types of the identity tokens that this server issues.
const (
	// OpenID is the scope that requests an ID token (OpenID Connect Core §3.1.2.1). Only clients
	// that the operator registered with it may use it.
	OpenID = "openid"
	// IDTokenType is the "typ" header of ID tokens.
	IDTokenType = "JWT"
	// IdentityAssertionType is the "typ" header of an ID-JAG
	// (draft-ietf-oauth-identity-assertion-authz-grant §3).
	IdentityAssertionType = "oauth-id-jag+jwt"
)

// Token type identifiers (RFC 8693 §3, ID-JAG).
const (
	TokenTypeAccess  = "urn:ietf:params:oauth:token-type:access_token"  // #nosec G101 -- a name
	TokenTypeRefresh = "urn:ietf:params:oauth:token-type:refresh_token" // #nosec G101 -- a name
	TokenTypeID      = "urn:ietf:params:oauth:token-type:id_token"      // #nosec G101 -- a name
	TokenTypeJWT     = "urn:ietf:params:oauth:token-type:jwt"           // #nosec G101 -- a name
	TokenTypeIDJAG   = "urn:ietf:params:oauth:token-type:id-jag"        // #nosec G101 -- a name
)

// IDTokenClaims holds all claims of an ID token (OpenID Connect Core §2).
type IDTokenClaims struct {
	Issuer   string   `json:"iss"`
	Subject  string   `json:"sub"` // a user id
	Audience string   `json:"aud"` // the client id
	Expires  int64    `json:"exp"` // seconds since the epoch
	IssuedAt int64    `json:"iat"`
	TokenID  string   `json:"jti"`                 // the id of the grant, which gets one ID token
	AuthTime int64    `json:"auth_time,omitempty"` // when the user signed in; 0 if the provider did not report it
	Nonce    string   `json:"nonce,omitempty"`
	ACR      string   `json:"acr,omitempty"`
	AMR      []string `json:"amr,omitempty"`
}

// IdentityAssertionClaims holds the claims of an ID-JAG
// (draft-ietf-oauth-identity-assertion-authz-grant §3).
type IdentityAssertionClaims struct {
	Issuer   string   `json:"iss"`
	Subject  string   `json:"sub"`       // a user id
	Audience string   `json:"aud"`       // the issuer of the authorization server that redeems the assertion
	ClientID string   `json:"client_id"` // of the client at that server
	TokenID  string   `json:"jti"`
	Expires  int64    `json:"exp"`
	IssuedAt int64    `json:"iat"`
	Resource any      `json:"resource"` // a string, or a list of strings
	Scope    string   `json:"scope,omitempty"`
	AuthTime int64    `json:"auth_time,omitempty"`
	ACR      string   `json:"acr,omitempty"`
	AMR      []string `json:"amr,omitempty"`
	Email    string   `json:"email,omitempty"`
	// Confirmation (cnf) is the client's key, which is required to redeem the assertion. May be
	// nil.
	Confirmation *Confirmation `json:"cnf,omitempty"`
}
