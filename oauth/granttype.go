package oauth

// Grant types, as used in client registrations and token requests.
const (
	GrantCode              = "authorization_code" // OAuth 2.1 §4.1
	GrantRefresh           = "refresh_token"      // OAuth 2.1 §4.3
	GrantClientCredentials = "client_credentials" // OAuth 2.1 §4.2
	// RFC 8628 §3.4.
	GrantDeviceCode = "urn:ietf:params:oauth:grant-type:device_code" // #nosec G101 -- a name
	// RFC 7523 §2.1.
	GrantJWTBearer = "urn:ietf:params:oauth:grant-type:jwt-bearer" // #nosec G101 -- a name
	// RFC 8693 §2.1.
	GrantTokenExchange = "urn:ietf:params:oauth:grant-type:token-exchange" // #nosec G101 -- a name
)

// ProfileIDJAG is the profile of GrantJWTBearer for ID-JAG assertions (Identity Assertion JWT
// Authorization Grant).
const ProfileIDJAG = "urn:ietf:params:oauth:grant-profile:id-jag"

// PrivateKeyJWT is client authentication with a signed assertion (OpenID Connect Core §9, RFC 7523
// §2.2).
const PrivateKeyJWT = "private_key_jwt"
