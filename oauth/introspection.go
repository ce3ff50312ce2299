package oauth

// Introspection is an introspection response (RFC 7662 §2.2), members in the order of the RFC. If
// Active is false, no other member is set.
type Introspection struct {
	Active    bool   `json:"active"`               // REQUIRED
	Scope     string `json:"scope,omitempty"`      // OPTIONAL, space-delimited
	ClientID  string `json:"client_id,omitempty"`  // OPTIONAL
	Username  string `json:"username,omitempty"`   // OPTIONAL, human-readable
	TokenType string `json:"token_type,omitempty"` // OPTIONAL, "Bearer" for an access token
	Expires   int64  `json:"exp,omitempty"`        // OPTIONAL, seconds since the epoch
	IssuedAt  int64  `json:"iat,omitempty"`        // OPTIONAL, seconds since the epoch
	NotBefore int64  `json:"nbf,omitempty"`        // OPTIONAL, seconds since the epoch
	Subject   string `json:"sub,omitempty"`        // OPTIONAL
	Audience  string `json:"aud,omitempty"`        // OPTIONAL, the resource the token is for
	Issuer    string `json:"iss,omitempty"`        // OPTIONAL
	TokenID   string `json:"jti,omitempty"`        // OPTIONAL
	GrantID   string `json:"gid,omitempty"`        // extension: the grant that the token belongs to
	NodeID    string `json:"nid,omitempty"`        // extension: the node of the sub-agent that holds the token
	Act       *Actor `json:"act,omitempty"`        // OPTIONAL, RFC 8693 §4.1: who acts for the subject

	AuthTime int64    `json:"auth_time,omitempty"` // OPTIONAL, RFC 9470 §6.2, seconds since the epoch
	ACR      string   `json:"acr,omitempty"`       // OPTIONAL, RFC 9470 §6.2
	AMR      []string `json:"amr,omitempty"`       // OPTIONAL, RFC 8176

	// extension: the tools, by name or pattern, each call of which the user must approve
	ApproveTools []string `json:"approve_tools,omitempty"`

	Confirmation *Confirmation `json:"cnf,omitempty"` // OPTIONAL, nil for a bearer token
}

// Confirmation is the key that a token is bound to (RFC 7800 §3.1).
type Confirmation struct {
	Thumbprint string `json:"jkt,omitempty"` // of the JWK (RFC 7638), base64url; RFC 9449 §6.2
}
