package oauth

// AccessTokenType is the "typ" header of an RFC 9068 access token (§2.1).
const AccessTokenType = "at+jwt"

// AccessTokenClaims holds the claims of an access token that this project issues (RFC 9068 §2.2),
// in the order of the RFC.
type AccessTokenClaims struct {
	Issuer   string   `json:"iss"`
	Expires  int64    `json:"exp"` // seconds since the epoch
	Audience string   `json:"aud"` // the canonical resource indicator
	Subject  string   `json:"sub"` // a user id ("usr_..."), or the client id for a machine (RFC 9068 §5)
	ClientID string   `json:"client_id"`
	IssuedAt int64    `json:"iat"` // seconds since the epoch
	TokenID  string   `json:"jti"`
	AuthTime int64    `json:"auth_time,omitempty"` // when the user signed in, seconds since the epoch
	ACR      string   `json:"acr,omitempty"`       // the authentication context class, see ACRs
	AMR      []string `json:"amr,omitempty"`       // the authentication methods (RFC 8176)
	Scope    string   `json:"scope,omitempty"`
	GrantID  string   `json:"gid,omitempty"` // extension: the grant, to revoke all of its tokens
	NodeID   string   `json:"nid,omitempty"` // extension: the sub-agent's node, to revoke it and its sub-agents
	Act      *Actor   `json:"act,omitempty"` // acts for the subject; nil if the client itself acts (RFC 8693 §4.1)
	// extension: the tools, by name or pattern, each call of which the user must approve
	ApproveTools []string `json:"approve_tools,omitempty"`
	// cnf: the key that the token is bound to (RFC 7800 §3.1), nil for a bearer token
	Confirmation *Confirmation `json:"cnf,omitempty"`
	// Where to check whether the grant was revoked (OAuth Token Status List §6.2).
	Status *Status `json:"status,omitempty"`
}

// Status is the status claim of a token (OAuth Token Status List §6.2).
type Status struct {
	List StatusReference `json:"status_list"`
}

// StatusReference is the position of a token in a status list.
type StatusReference struct {
	Index int64  `json:"idx"` // REQUIRED
	URI   string `json:"uri"` // REQUIRED: the URL of the list
}

// TokenResponse is a successful response of the token endpoint (RFC 6749 §5.1).
type TokenResponse struct {
	AccessToken  string `json:"access_token"`            // REQUIRED
	TokenType    string `json:"token_type"`              // REQUIRED, "Bearer" or "DPoP"
	ExpiresIn    int64  `json:"expires_in"`              // RECOMMENDED, seconds
	RefreshToken string `json:"refresh_token,omitempty"` // OPTIONAL
	Scope        string `json:"scope,omitempty"`         // always sent by this server
	IDToken      string `json:"id_token,omitempty"`      // OpenID Connect Core §3.1.3.3, for a sign-in
}

// ExchangeResponse is a successful response to a token exchange (RFC 8693 §2.2.1).
type ExchangeResponse struct {
	AccessToken     string `json:"access_token"`         // REQUIRED: the provider's token
	IssuedTokenType string `json:"issued_token_type"`    // REQUIRED: the type of an access token
	TokenType       string `json:"token_type"`           // REQUIRED
	ExpiresIn       int64  `json:"expires_in,omitempty"` // RECOMMENDED, seconds; omitted if the provider omits it
	Scope           string `json:"scope,omitempty"`      // OPTIONAL: the scope that the token really has
}
