package attempt

// Fault names why an attempt failed. The names are a stable contract.
type Fault string

// The faults.
const (
	MetadataWrongPath     Fault = "metadata_wrong_path"
	MetadataOnly          Fault = "metadata_only"
	RegistrationRefused   Fault = "registration_refused"
	RegistrationOnly      Fault = "registration_only"
	ClientUnknown         Fault = "client_unknown"
	RedirectURIUnknown    Fault = "redirect_uri_unknown"
	ResourceUnknown       Fault = "resource_unknown"
	PKCEMissing           Fault = "pkce_missing"
	RequestRefused        Fault = "request_refused"
	PersonDidNotReturn    Fault = "person_did_not_return"
	PersonRefused         Fault = "person_refused"
	SignInRefused         Fault = "signin_refused"
	ProviderRefused       Fault = "provider_refused"
	ProviderDidNotReturn  Fault = "provider_did_not_return"
	CodeNotRedeemed       Fault = "code_not_redeemed"
	CodeUnknown           Fault = "code_unknown"
	CodeSpent             Fault = "code_spent"
	CodeExpired           Fault = "code_expired"
	VerifierWrong         Fault = "verifier_wrong"
	RedirectURIChanged    Fault = "redirect_uri_changed"
	CredentialsWrong      Fault = "credentials_wrong"
	RefreshTokenSpent     Fault = "refresh_token_spent"
	GrantEnded            Fault = "grant_ended"
	ServerFailed          Fault = "server_failed"
	beginAgain                  = "Begin again in the application."
	tellTheAuthor               = "Nothing is wrong here. Send the author of the client what this attempt says."
	removeAndConnectAgain       = "Remove the connection in the application, and connect again."
)

// cause is a fault with who can change it, and what each side does.
type cause struct {
	fault  Fault
	whose  Whose
	advice Advice
}

func (c cause) verdict(text string) Verdict {
	return Verdict{Text: text, Fault: c.fault, Whose: c.whose, Advice: c.advice}
}

// The causes.
var (
	wrongPath = cause{MetadataWrongPath, OfClient, Advice{
		Person: "Check the address of the MCP server in the application.",
		Operator: "Compare the issuer with what the MCP server names in authorization_servers: mcp-authd check MCP_URL. " +
			"A proxy must pass on all paths below /.well-known/.",
		Client: "Read the metadata where RFC 8414 section 3.1 puts them, for the issuer exactly as it is named: " +
			"no slash is added or taken away.",
	}}
	readOnly = cause{MetadataOnly, OfClient, Advice{
		Person: beginAgain,
		Operator: "Compare the issuer in the metadata with what the MCP server names, to the byte: a client refuses " +
			"metadata of another issuer (RFC 8414 section 3.3). If clients are not to register, add this one: " +
			"mcp-authd client add.",
		Client: "Compare issuer and authorization_servers as strings, and log why you stop.",
	}}
	badRegistration = cause{RegistrationRefused, OfClient, Advice{
		Person:   "The application cannot be used here as it is. Tell who runs this server.",
		Operator: "Allow what was refused under registration, or add the client: mcp-authd client add.",
		Client:   "Register what the answer permits (RFC 7591 section 3.2.2).",
	}}
	registeredOnly = cause{RegistrationOnly, OfClient, Advice{
		Person:   "Look whether the application asks to open a browser, or shows an address to open.",
		Operator: tellTheAuthor,
		Client:   "Open a browser at the authorization endpoint, or print its address.",
	}}
	unknownClient = cause{ClientUnknown, OfClient, Advice{
		Person:   removeAndConnectAgain,
		Operator: "The registration is older than the secret key or was removed. " + removeAndConnectAgain,
		Client:   "Forget a client id that is answered with invalid_client, and register again.",
	}}
	badRedirect = cause{RedirectURIUnknown, OfClient, Advice{
		Person: removeAndConnectAgain,
		Operator: "If you registered the client, add this redirect URI: mcp-authd client add. For a metadata document " +
			"see registration.documents_redirects.",
		Client: "Send a redirect URI exactly as it is registered. Only the port of http://127.0.0.1, http://[::1] " +
			"and http://localhost may differ (RFC 8252 section 7.3).",
	}}
	badResource = cause{ResourceUnknown, OfClient, Advice{
		Person:   "Check the address of the MCP server in the application.",
		Operator: "Add the MCP server by the URL that clients use: mcp-authd resource add, or give it an alias.",
		Client:   "Send the resource of the protected resource metadata (RFC 9728) as it is.",
	}}
	noPKCE = cause{PKCEMissing, OfClient, Advice{
		Person:   "The application cannot be used here as it is. Look for a newer version.",
		Operator: tellTheAuthor,
		Client:   "Send code_challenge with code_challenge_method=S256 (RFC 7636; OAuth 2.1 section 4.1.1).",
	}}
	refused = cause{RequestRefused, OfClient, Advice{
		Person:   beginAgain,
		Operator: tellTheAuthor,
		Client:   "Correct what the answer names.",
	}}
	notReturned = cause{PersonDidNotReturn, OfPerson, Advice{
		Person:   beginAgain + " Leave the window open until it says that you are done.",
		Operator: "The person closed the window, or the page did not load. Ask them.",
		Client:   "Tell people that the sign-in waits in the browser, and offer to open it again.",
	}}
	denied = cause{PersonRefused, OfPerson, Advice{
		Person:   beginAgain + " Allow the access if you want to use the application.",
		Operator: "Nothing is wrong.",
		Client:   "Tell people that they refused, and offer to begin again.",
	}}
	badProof = cause{SignInRefused, OfPerson, Advice{
		Person:   "Sign in with what you set up for this account, or ask who runs this server for a new link.",
		Operator: "The log says which proof was refused, and why. A new link: mcp-authd user recover NAME.",
		Client:   "Nothing.",
	}}
	badProvider = cause{ProviderRefused, OfOperator, Advice{
		Person:   "Sign in again. If it stays so, tell who runs this server.",
		Operator: "Look at the provider: mcp-authd doctor.",
		Client:   "Nothing.",
	}}
	notBack = cause{ProviderDidNotReturn, OfOperator, Advice{
		Person:   beginAgain,
		Operator: "Compare the redirect URI that is registered at the provider with the one that serve prints: mcp-authd doctor.",
		Client:   "Nothing.",
	}}
	notRedeemed = cause{CodeNotRedeemed, OfClient, Advice{
		Person:   beginAgain + " Leave the application running until it says that you are signed in.",
		Operator: tellTheAuthor,
		Client: "Keep state and code_verifier until the browser comes back, also over a restart, and keep the listener " +
			"of the redirect URI open. A state that is not found is to be shown to the person as an error.",
	}}
	badCode = cause{CodeUnknown, OfClient, Advice{
		Person:   beginAgain,
		Operator: tellTheAuthor,
		Client:   "Redeem the code with the client id that asked for it, at the server that issued it (RFC 9207).",
	}}
	spentCode = cause{CodeSpent, OfClient, Advice{
		Person:   beginAgain,
		Operator: "If the client does not do it twice itself, somebody else has seen the code.",
		Client:   "Redeem a code once. When the answer is lost, begin again.",
	}}
	lateCode = cause{CodeExpired, OfClient, Advice{
		Person:   beginAgain,
		Operator: "If clients on slow devices need longer: tokens.code_ttl.",
		Client:   "Redeem the code as soon as it comes.",
	}}
	badVerifier = cause{VerifierWrong, OfClient, Advice{
		Person:   beginAgain + " Begin only once at a time.",
		Operator: tellTheAuthor,
		Client: "Keep one code_verifier for each state, and send the one that belongs to the state which came back " +
			"(RFC 7636 section 4.5).",
	}}
	otherRedirect = cause{RedirectURIChanged, OfClient, Advice{
		Person:   beginAgain,
		Operator: tellTheAuthor,
		Client:   "Send the redirect_uri of the authorization request, or none (OAuth 2.1 section 4.1.3).",
	}}
	badCredentials = cause{CredentialsWrong, OfClient, Advice{
		Person:   removeAndConnectAgain,
		Operator: "If you registered the client, compare its secret, or make a new one: mcp-authd client rotate-secret.",
		Client:   "Authenticate as registered (token_endpoint_auth_method).",
	}}
	spentRefresh = cause{RefreshTokenSpent, OfClient, Advice{
		Person:   beginAgain,
		Operator: "Two processes of the client use one refresh token, or somebody else has it.",
		Client:   "Store each new refresh token before you use it, and share it between processes under a lock.",
	}}
	endedGrant = cause{GrantEnded, OfPerson, Advice{
		Person:   beginAgain,
		Operator: "The log says what ended the grant (grant.revoked).",
		Client:   "On invalid_grant begin again with an authorization request.",
	}}
	broken = cause{ServerFailed, OfOperator, Advice{
		Person:   "Try again in a minute. If it stays so, tell who runs this server.",
		Operator: "Look for the reference in the log, and at: mcp-authd doctor.",
		Client:   "Try again after the time in Retry-After.",
	}}
)
