package oauth

// What people's sign-ins here are passed on as.
const (
	// OpenID is the scope by which a client that the operator registered with it has people sign in
	// here (OpenID Connect Core §3.1.2.1).
	OpenID = "openid"
	// IDTokenType is the "typ" header of our ID tokens.
	IDTokenType = "JWT"
	// IdentityAssertionType is the "typ" header of an ID-JAG (draft-ietf-oauth-identity-assertion-authz-grant §3).
	IdentityAssertionType = "oauth-id-jag+jwt"
)

// Token type identifiers (RFC 8693 §3, and that of the ID-JAG).
const (
	TokenTypeAccess  = "urn:ietf:params:oauth:token-type:access_token"  // #nosec G101 -- a name
	TokenTypeRefresh = "urn:ietf:params:oauth:token-type:refresh_token" // #nosec G101 -- a name
	TokenTypeID      = "urn:ietf:params:oauth:token-type:id_token"      // #nosec G101 -- a name
	TokenTypeJWT     = "urn:ietf:params:oauth:token-type:jwt"           // #nosec G101 -- a name
	TokenTypeIDJAG   = "urn:ietf:params:oauth:token-type:id-jag"        // #nosec G101 -- a name
)

// IDTokenClaims are the claims of our ID tokens (OpenID Connect Core §2). There are no more.
type IDTokenClaims struct {
	Issuer   string   `json:"iss"`
	Subject  string   `json:"sub"` // a user id
	Audience string   `json:"aud"` // the client id
	Expires  int64    `json:"exp"` // seconds since the epoch
	IssuedAt int64    `json:"iat"`
	TokenID  string   `json:"jti"`                 // the grant, which gets one ID token
	AuthTime int64    `json:"auth_time,omitempty"` // when the person signed in; 0: a provider did not say
	Nonce    string   `json:"nonce,omitempty"`
	ACR      string   `json:"acr,omitempty"`
	AMR      []string `json:"amr,omitempty"`
}

// IdentityAssertionClaims are the claims of an ID-JAG (draft-ietf-oauth-identity-assertion-authz-grant §3).
type IdentityAssertionClaims struct {
	Issuer   string   `json:"iss"`
	Subject  string   `json:"sub"`       // a user id
	Audience string   `json:"aud"`       // the issuer of the authorization server that redeems it
	ClientID string   `json:"client_id"` // of the client there
	TokenID  string   `json:"jti"`
	Expires  int64    `json:"exp"`
	IssuedAt int64    `json:"iat"`
	Resource any      `json:"resource"` // a string, or a list of several
	Scope    string   `json:"scope,omitempty"`
	AuthTime int64    `json:"auth_time,omitempty"`
	ACR      string   `json:"acr,omitempty"`
	AMR      []string `json:"amr,omitempty"`
	Email    string   `json:"email,omitempty"`
	// Confirmation is the client's key, with which alone the assertion is redeemed: cnf; may be nil.
	Confirmation *Confirmation `json:"cnf,omitempty"`
}
