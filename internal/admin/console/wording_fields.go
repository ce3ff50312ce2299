package console

// formLabels holds the text of form fields, by name, or by operation and name.
var formLabels = map[string]fieldText{
	"id":                       {name: "ID"},
	"name":                     {name: "Name"},
	"user":                     {"User", "A name or an ID."},
	"client":                   {"Client", "A name or an ID."},
	"resource":                 {"MCP server", "Its URL."},
	"uri":                      {"URL", "The address that clients connect to, such as https://notes.example.com/mcp."},
	"reference":                {"Reference", "The code on the error page that the user saw."},
	"index":                    {"Entry", "The number of the entry in the audit log."},
	"role":                     {"Role", "A role lets the user open this console. Most users need none."},
	"mail":                     {"Mail address", "For notices about the account."},
	"password":                 {"Password", "At least 8 characters."},
	"group":                    {"Group", "Small letters, digits, hyphens, dots and underscores."},
	"kid":                      {name: "Key ID"},
	"receiver":                 {"Receiver", "Its ID in the configuration."},
	"digest":                   {name: "Digest"},
	"audience":                 {"Authorization server", "Its issuer URL."},
	"all":                      {name: "Every scope, also later ones"},
	"none":                     {name: "No access to this MCP server"},
	"everyone":                 {name: "Everyone without a rule of their own"},
	"approve":                  {"Tools to approve", "Each call must be approved. One per line, such as delete_*."},
	"into":                     {"Merge into", "The name or ID of the application that stays."},
	"redirect_uris":            {"Redirect URIs", "One per line, for a client that users sign in to."},
	"grant_types":              {"Grant types", "One per line. A machine has client_credentials."},
	"auth_method":              {"Client authentication", "How the client proves who it is."},
	"jwks":                     {"Public keys", "A JSON Web Key Set, for authentication with keys."},
	"jwks_uri":                 {"URL of the public keys", "Instead of the keys themselves."},
	"require_par":              {name: "Requests must be pushed (PAR)"},
	"dpop_bound_access_tokens": {name: "Bind every token to a key of the client (DPoP)"},
	"now": {
		"Sign with the new key at once",
		"In fifteen seconds, instead of once resource servers know it.",
	},
	"revoke": {
		"Also revoke the other keys",
		"For a stolen key. All tokens signed so far stop working.",
	},
	"aliases": {
		"Other URLs",
		"One per line. One application can connect once per URL, each time as another user.",
	},
	"dpop": {
		"Tokens bound to a key (DPoP)",
		"If required, clients without support for DPoP cannot connect.",
	},
	"upstream": {
		"Address behind the gateway",
		"If the gateway serves it: the URL behind the gateway, never a command.",
	},
	"tool_rules": {
		"Rules for tools",
		"For an MCP server behind the gateway: what the call of a tool needs.",
	},
	"token":     {"Access token", "It is neither stored nor logged."},
	"assertion": {"Assertion", "A JWT of the issuer. It is neither stored nor used up."},
	"kind": {
		"Kind",
		"enterprise for users of an organization, workload for programs. Presets set it.",
	},
	"issuer":           {"Issuer", "The iss of its assertions. Presets set it."},
	"preset":           {"Preset", "Such as github-actions, gitlab-ci, kubernetes or okta."},
	"parameters":       {"Settings of the preset", ""},
	"jwks_url":         {"URL of the issuer's keys", "Without one, the issuer's metadata names them."},
	"jwks_file":        {"File with the issuer's keys", "On the server."},
	"ca_file":          {"File with CA certificates", "To read the keys of a Kubernetes cluster."},
	"token_file":       {"File with a token", "To read the keys of a Kubernetes cluster."},
	"networks":         {"Private networks", "Where keys may be read, one per line."},
	"audience_aliases": {"Other audiences", "Values of aud that also mean this server, one per line."},
	"match":            {"Rules about claims", "All of them must hold."},
	"max_ttl":          {"Longest lifetime", "Of an assertion and its token, such as 1h."},
	"create_people":    {name: "Create an account for an unknown user"},
	"email_domains":    {"Mail domains", "That the issuer may vouch for, one per line."},
	"saml_issuers":     {"SAML issuers", "That the issuer may name, one per line."},
	"resubmit":         {name: "An assertion may be used more than once"},
	"require_jti":      {name: "An assertion needs an ID (jti)"},
	"allow_public":     {name: "Accept assertions from clients without credentials"},
	"event_audience": {
		"Audience of security events",
		"One per line. Without any, events are refused.",
	},
	"subject":     {"Subject", "The issuer's ID for the user (sub)."},
	"tenant":      {"Tenant", "If subjects are unique only within a tenant."},
	"saml_issuer": {"SAML issuer", "If the subject is a name of this SAML issuer."},
	"clients":     {"Clients", "Those that may get assertions, with their IDs there."},
	"max_age":     {"Longest time since the sign-in", "Such as 12h."},

	"application show id": {"Application", "A name or an ID."},

	"application split id": {"Application", "The ID that was merged into the other."},

	"filter match":  {name: "Name, or a part of it"},
	"filter failed": {name: "Failed only"},
	"filter tree":   {name: "With sub-agents"},
	"filter since":  {name: "From"},
	"filter until":  {name: "Until"},

	"client add id":   {"Client ID", "Leave it empty for a random one."},
	"client add name": {"Name", "Users see it when they are asked for access."},
	"client add scopes": {
		"Scopes",
		"One per line. Only a machine needs them, or openid to sign users in.",
	},
	"client add resources": {
		"MCP servers",
		"URLs, one per line. The client gets tokens for these only.",
	},

	"client delete id": {"Client", "A name or an ID."},

	"client show id": {"Client", "A name or an ID."},

	"grant end-pause id": {"Pause", "Its ID, pau_..."},

	"grant narrow scopes": {"Scopes to keep", "One per line. All others are removed."},

	"grant revoke-helper id": {"Sub-agent", "Its ID, nod_..."},

	"grant revoke-many client":   {"Client", "Only its grants."},
	"grant revoke-many user":     {"User", "Only their grants."},
	"grant revoke-many resource": {"MCP server", "Only grants for it."},
	"grant revoke-many provider": {
		"Identity provider",
		"Only grants from sign-ins there. It also signs those users out.",
	},
	"grant revoke-many all": {name: "Every grant of this server"},

	"grant show id": {"Grant", "Its ID, grt_..."},

	"group add users":       {"Users to add", "Names, one per line."},
	"group add description": {"Description", "For a new group."},
	"group add provider":    {"Identity provider", "To add a group of a provider: the provider's ID."},
	"group add provider_group": {
		"Group at the provider",
		"Its members become members here when they sign in.",
	},

	"group delete group": {name: "Group"},

	"group remove users": {"Users to remove", "Names, one per line."},
	"group remove provider": {
		"Identity provider",
		"To remove a group of a provider: the provider's ID.",
	},
	"group remove provider_group": {name: "Group at the provider"},
	"group remove group":          {name: "Group"},

	"group show group": {name: "Group"},

	"mail test mail": {name: "Send it to"},

	"proposal show id": {name: "Proposal"},

	"provider show id": {"Identity provider", "Its ID."},

	"resource accept name": {name: "Tool"},

	"resource add name": {
		"Name",
		"Users see it when they are asked for access. Without one they see the URL.",
	},
	"resource add scopes": {
		"Scopes",
		"What clients can ask for. Without any, there is one scope named mcp.",
	},

	"resource set name":   {"Name", "Users see it when they are asked for access."},
	"resource set scopes": {"Scopes", "What clients can ask for."},

	"resource tool name": {name: "Tool"},

	"rule set user":   {"User", "Fill in a user or a group, or tick everyone."},
	"rule set group":  {"Group", "Fill in a user or a group, or tick everyone."},
	"rule set scopes": {"Scopes they may have", "One per line."},

	"trust add id":        {"ID", "A short name for this issuer, such as ci."},
	"trust add resources": {"MCP servers", "URLs, one per line. Without any there is no limit."},
	"trust add scopes":    {"Scopes", "One per line. Without any there is no limit."},
	"trust add subject":   {"Name of a workload", "A template over the claims."},

	"trust issue add resources": {"MCP servers there", "URLs, one per line."},
	"trust issue add scopes":    {"Scopes there", "One per line."},
	"trust issue add mail":      {name: "Include the user's mail address"},

	"trust show id": {name: "Trusted issuer"},

	"user add name": {"Name", "The user signs in with it."},

	"user invite name": {"Name", "The new account gets this name."},
	"user invite mail": {
		"Mail address",
		"The link is sent there. Without one, copy the link yourself.",
	},
	"user invite groups": {"Groups", "One per line. Groups decide what the user may access."},
	"user invite ttl": {
		"Link works for",
		"Such as 12h or 7d. Leave it empty for the configured time.",
	},

	"user passwd password":    {"New password", "At least 8 characters."},
	"user passwd keep_grants": {name: "Keep the access of applications"},

	"user recover ttl": {
		"Link works for",
		"Such as 12h or 7d. Leave it empty for the configured time.",
	},
	"user recover now": {
		"Only if the link works at once",
		"Otherwise it may start later, so that the user can object.",
	},

	"user sessions end session": {name: "Session"},

	"user set-mail mail": {"Mail address", "Leave it empty to send no mail."},

	"user set-role role": {name: "Role"},

	"user show name": {"Name", "A name or an ID."},

	"user ways remove way":   {name: "Authentication method"},
	"user ways remove force": {name: "Also if the user then cannot sign in"},

	"scopes.name":        {name: "Name"},
	"scopes.description": {name: "Description"},
	"scopes.default":     {name: "Asked for at the first sign-in"},
	"scopes.every_call":  {name: "Needed by every call"},
	"scopes.implies":     {name: "Includes these scopes"},
	"scopes.access":      {name: "Kind of access"},
	"scopes.required":    {name: "Users cannot leave it out"},
	"scopes.dangerous":   {name: "Dangerous: granted only to a user who picks it"},
	"scopes.acr":         {name: "Required authentication class (acr)"},
	"scopes.max_age":     {name: "Longest time since the sign-in, such as 5m"},

	"tool_rules.name":   {name: "Tool, or the start of names with *"},
	"tool_rules.scopes": {name: "Scopes that a call needs"},
	"tool_rules.deny":   {name: "Nobody may call it"},
	"tool_rules.direct": {name: "Not for sub-agents of the application"},

	"clients.id":    {name: "Client ID here"},
	"clients.there": {name: "Client ID there"},

	"match.claim":      {name: "Claim"},
	"match.equals":     {name: "Must equal"},
	"match.glob":       {name: "Must match the pattern, such as repo:acme/*"},
	"match.expression": {name: "Or a condition over all claims"},
}
