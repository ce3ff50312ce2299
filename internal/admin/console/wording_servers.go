package console

var attemptTexts = map[string]wording{
	"attempt list":    {title: "Attempts", act: "Attempts"},
	"attempt show":    {title: "Find an attempt", act: "Show"},
	"attempt explain": {title: "Explain an attempt", act: "Explain"},
	"attempt bundle":  {title: "Download an attempt", act: "Download"},
}

var auditTexts = map[string]wording{
	"audit list": {title: "Audit log", act: "Audit log"},
	"audit show": {title: "Find an entry", act: "Show"},
	"audit prove": {
		act: "Prove", title: "Prove an entry",
		lead: "Shows the entries that allowed an action, back to the user's approval, and proves that they are in " +
			"the log.",
	},
	"audit checkpoint": {
		act: "Checkpoint", title: "Checkpoint",
		lead: "The signed size and hash of the log. Keep it elsewhere: it proves later that nothing was changed.",
	},
	"audit sinks": {
		act: "Log destinations", title: "Log destinations",
		lead: "Where entries are delivered, and what is queued for each. A destination that fails delays only " +
			"itself.",
	},
}

var healthTexts = map[string]wording{
	"health show": {title: "Health", act: "Health"},
}

var tokenTexts = map[string]wording{
	"token inspect": {
		act: "Check a token", title: "Check a token",
		lead: "Shows what an access token contains, and why it is refused.",
	},
}

var mailTexts = map[string]wording{
	"mail test": {
		act: "Send a test mail", title: "Send a test mail",
		lead: "Sends a message now and reports the answer of the mail server.", done: "The test mail was sent.",
	},
}

var serverTexts = map[string]wording{
	"resource add": {
		act: "Add an MCP server", title: "Add an MCP server",
		lead: "Clients can then get tokens for it. Within seconds, all servers of this installation know it.",
		done: "The MCP server was added.",
	},
	"resource set": {
		act: "Change", title: "Change %s",
		lead: "The lists below replace the present ones. Scopes that you remove stop working in existing grants. " +
			"Removing another URL revokes every grant for it.",
		done: "The MCP server was changed.",
	},
	"resource remove": {
		act: "Remove", title: "Remove %s",
		lead: "Clients no longer get tokens for it, and every application loses its access to it.",
		done: "The MCP server was removed.",
	},
	"resource tools": {
		act: "Tools", title: "Tools",
		lead: "The tools that the gateway has seen. A changed definition can instruct a model: look at the " +
			"difference before you accept it.",
	},
	"resource tool": {
		act: "Show", title: "Find a tool", lead: "The definition of a tool, and how it has changed.",
	},
	"resource accept": {
		act: "Review", title: "Review %s", lead: "Accept the new definition of the tool, or keep the accepted one.",
		done: "The definition was accepted.",
	},
	"resource list": {title: "MCP servers", act: "MCP servers"},
	"resource show": {title: "Find an MCP server", act: "Show"},
}

var providerTexts = map[string]wording{
	"provider list": {title: "Identity providers", act: "Identity providers"},
	"provider show": {title: "Check an identity provider", act: "Check"},
}

var receiverTexts = map[string]wording{
	"events list": {title: "Event receivers", act: "Event receivers"},
	"events test": {
		act: "Send a test event", title: "Send a test event to %s",
		lead: "Queues a verification event behind the events that already wait.", done: "The test event is queued.",
	},
}

var trustTexts = map[string]wording{
	"trust add": {
		act: "Add an issuer", title: "Add a trusted issuer",
		lead: "Lets users of an organization, or programs of a platform, get tokens with assertions of this issuer. " +
			"A preset fills in most fields.",
		done: "The issuer was added.",
	},
	"trust disable": {
		act: "Disable", title: "Disable the issuer %s",
		lead: "Its assertions are refused, and access that was given for them ends.", done: "The issuer %s is " +
			"disabled.",
	},
	"trust enable": {
		act: "Enable", title: "Enable the issuer %s", lead: "Its assertions are accepted again.",
		done: "The issuer %s is enabled.",
	},
	"trust remove": {
		act: "Remove", title: "Remove the issuer %s",
		lead: "Its assertions are refused, and access that was given for them ends.", done: "The issuer %s was " +
			"removed.",
	},
	"trust link": {
		act: "Link a user", title: "Link a user of %s to an account",
		lead: "Assertions about this user of the issuer then belong to the account.", done: "The user was linked.",
	},
	"trust unlink": {
		act: "Unlink a user", title: "Unlink a user of %s from an account",
		lead: "Also revokes what the account got from assertions. Programs have to ask again.",
		done: "The user was unlinked.",
	},
	"trust test": {
		act: "Test an assertion", title: "Test an assertion",
		lead: "Shows which issuer and rules would accept it, or why none does. No token is issued.",
	},
	"trust issue add": {
		act: "Add an audience", title: "Let clients get assertions for a server",
		lead: "Clients can exchange sign-ins here for assertions that another authorization server accepts.",
		done: "The audience was added.",
	},
	"trust issue list": {
		act: "Audiences", title: "Audiences of assertions",
		lead: "The authorization servers that clients can get assertions for.",
	},
	"trust issue remove": {
		act: "Remove", title: "Stop assertions for %s",
		lead: "No more assertions are issued for it. Those already issued expire within five minutes.",
		done: "No more assertions are issued for %s.",
	},
	"trust list": {title: "Trusted issuers", act: "Trusted issuers"},
	"trust show": {title: "Find a trusted issuer", act: "Show"},
}

var keyTexts = map[string]wording{
	"keys rotate": {
		act: "Replace the key", title: "Replace the signing key",
		lead: "Publishes a new key. It signs once resource servers have had time to read it; tokens stay valid.",
		done: "The next signing key is published.",
	},
	"keys revoke": {
		act: "Revoke", title: "Revoke the key %s",
		lead: "Use this for a stolen key. Tokens that it signed are refused; clients get new ones by themselves.",
		done: "The key %s was revoked.",
	},
	"keys list": {title: "Signing keys", act: "Signing keys"},
}
